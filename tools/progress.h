// A line on the terminal for work that takes longer than a second; silent when standard error is
// not a terminal, and gone when the work is done.
#ifndef CONVGRAD_TOOLS_PROGRESS_H_
#define CONVGRAD_TOOLS_PROGRESS_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace convgrad::tools {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Set(std::string what);
  // Call before printing a line elsewhere on the same terminal.
  void Clear();

 private:
  void Show();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  bool shown_ = false;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_PROGRESS_H_
