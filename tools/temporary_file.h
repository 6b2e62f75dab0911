// A file that becomes another one whole, or not at all, even when a signal ends the process. Knows
// nothing of tensors.
#ifndef CONVGRAD_TOOLS_TEMPORARY_FILE_H_
#define CONVGRAD_TOOLS_TEMPORARY_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "convgrad/status.h"

namespace convgrad::tools {

// path: what, and the system's word for `error`.
Status SystemError(const std::string& path, const std::string& what, int error);

struct Target {
  std::string path;            // links followed
  std::optional<mode_t> mode;  // of the file that is there
};

// Follows links; refuses what is not a regular file, or a read-only one.
Result<Target> FindTarget(const std::string& path);

// A file beside the target that becomes the target by Commit(), or vanishes. One at a time.
class TemporaryFile {
 public:
  explicit TemporaryFile(const Target& target) : target_(target) {}
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Status Create();
  Status Append(const void* data, int64_t bytes);
  Status Commit();

 private:
  Status Failed(int error) const;
  int OpenAndRegister();
  template <class Act>
  void Forget(Act act);

  Target target_;
  std::string path_;
  int file_ = -1;
};

// On SIGINT, SIGTERM and SIGHUP, unless they are ignored: removes the temporary file that there is,
// then ends the process by that signal. Call once, from main.
void RemoveTemporariesOnSignals();

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_TEMPORARY_FILE_H_
