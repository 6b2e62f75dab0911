#include "tools/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <system_error>

namespace convgrad::tools {

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (isatty(STDERR_FILENO) == 0) return;
  try {
    thread_ = std::thread([this] { Show(); });
  } catch (const std::system_error&) {
    // a limit on threads: the work is done without a display
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
  Clear();
}

void Progress::Set(std::string what) {
  std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::Clear() {
  std::lock_guard lock(mutex_);
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

void Progress::Show() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; });
  while (!done_) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count();
    // One row: what wraps could not be erased.
    winsize size{};
    const int columns =
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    const std::string text = std::to_string(seconds) + " s  " + what_;
    std::fprintf(stderr, "\r\033[K%.*s", columns - 1, text.c_str());
    std::fflush(stderr);
    shown_ = true;
    changed_.wait_for(lock, std::chrono::milliseconds(250), [this] { return done_; });
  }
}

}  // namespace convgrad::tools
