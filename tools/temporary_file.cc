#include "tools/temporary_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

namespace convgrad::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

Status Invalid(const std::string& path, const std::string& problem) {
  return {StatusCode::kInvalidArgument, path + ": " + problem};
}

// All that the handler touches. The lock is held while the file appears or disappears, with the
// signals blocked in that thread, so that the handler (in any thread) finds the name exactly while
// the file exists. The handler never gives the lock back: no second file can appear behind it.
std::atomic_flag temporary_lock = ATOMIC_FLAG_INIT;
char temporary_path[PATH_MAX] = "";

void LockTemporary() {
  while (temporary_lock.test_and_set(std::memory_order_acquire)) poll(nullptr, 0, 1);
}

sigset_t SignalSet() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kSignals) sigaddset(&set, number);
  return set;
}

class TemporaryLock {
 public:
  TemporaryLock() {
    const sigset_t set = SignalSet();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    LockTemporary();
  }
  ~TemporaryLock() {
    temporary_lock.clear(std::memory_order_release);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  TemporaryLock(const TemporaryLock&) = delete;
  TemporaryLock& operator=(const TemporaryLock&) = delete;

 private:
  sigset_t before_;
};

extern "C" void RemoveTemporaryAndEnd(int number) {
  LockTemporary();
  if (temporary_path[0] != '\0') unlink(temporary_path);
  signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
  // Process 1 of a container survives the default action.
  _exit(128 + number);
}

}  // namespace

Status SystemError(const std::string& path, const std::string& what, int error) {
  return Invalid(path, what + ": " + std::generic_category().message(error));
}

// `act` removes the temporary file.
template <class Act>
void TemporaryFile::Forget(Act act) {
  const TemporaryLock lock;
  act();
  temporary_path[0] = '\0';
}

TemporaryFile::~TemporaryFile() {
  if (file_ >= 0) close(file_);
  if (!path_.empty()) Forget([this] { unlink(path_.c_str()); });
}

Status TemporaryFile::Create() {
  const size_t slash = target_.path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : target_.path.substr(0, slash + 1);
  // Not the target's name: that may be as long as a name can be.
  const std::string stem = directory + ".convgrad-" + std::to_string(getpid()) + "-";
  for (int i = 0; file_ < 0 && i < 1000; ++i) {
    path_ = stem + std::to_string(i) + ".tmp";
    file_ = OpenAndRegister();
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) {
    path_.clear();
    return Failed(errno);
  }
  if (target_.mode && fchmod(file_, *target_.mode) != 0) return Failed(errno);
  return Status();
}

Status TemporaryFile::Append(const void* data, int64_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = write(file_, from, static_cast<size_t>(bytes));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return Failed(errno);
    from += done;
    bytes -= done;
  }
  return Status();
}

// Synced before the rename, so that after a power cut the target is the old file or the whole of
// the other. Some network file systems have no fsync: that is no reason to fail.
Status TemporaryFile::Commit() {
  const bool synced = fsync(file_) == 0 || errno == EINVAL || errno == ENOSYS;
  if (!synced) return Failed(errno);
  if (close(std::exchange(file_, -1)) != 0) return Failed(errno);
  int error = 0;
  Forget([&] {
    if (rename(path_.c_str(), target_.path.c_str()) == 0) return;
    error = errno;
    unlink(path_.c_str());
  });
  path_.clear();
  return error == 0 ? Status() : Failed(error);
}

Status TemporaryFile::Failed(int error) const {
  return SystemError(target_.path, "the file cannot be written", error);
}

// 0666 and not mkstemp's 0600: the kernel takes the umask off.
int TemporaryFile::OpenAndRegister() {
  if (path_.size() >= sizeof(temporary_path)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const TemporaryLock lock;
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file >= 0) std::memcpy(temporary_path, path_.c_str(), path_.size() + 1);
  return file;
}

Result<Target> FindTarget(const std::string& path) {
  Target target{path, std::nullopt};
  struct stat there;
  // Before links are followed: that of an open pipe, as /dev/stdout may be, leads to no name.
  const bool exists = stat(path.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
    return Invalid(path, "this is a pipe, socket or device, expected a regular file");
  }
  constexpr int kMostLinks = 40;
  bool through_process = false;
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat info;
    if (lstat(target.path.c_str(), &info) != 0) {
      if (errno == ENOENT) return target;
      return SystemError(path, "the file cannot be written", errno);
    }
    if (S_ISLNK(info.st_mode)) {
      through_process = through_process || target.path.starts_with("/proc/");
      char link[PATH_MAX];
      const ssize_t length = readlink(target.path.c_str(), link, sizeof(link));
      if (length < 0) return SystemError(path, "the link cannot be followed", errno);
      const std::string_view goal(link, static_cast<size_t>(length));
      const size_t slash = goal.starts_with('/') ? std::string::npos : target.path.rfind('/');
      target.path.resize(slash == std::string::npos ? 0 : slash + 1);
      target.path += goal;
      continue;
    }
    if (S_ISDIR(info.st_mode)) return Invalid(path, "this is a directory, expected a file");
    // Through an open file of this process: what writes to that would go on writing to the file
    // that is replaced.
    if (through_process) {
      return Invalid(path, "this is a file that is open already, expected the name of a file");
    }
    // Renaming would replace a file that its owner made read-only.
    if (access(target.path.c_str(), W_OK) != 0) {
      return SystemError(path, "the file cannot be written", errno);
    }
    target.mode = info.st_mode & 0777;
    return target;
  }
  return SystemError(path, "the link cannot be followed", ELOOP);
}

void RemoveTemporariesOnSignals() {
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of write() like any other
  for (const int number : kSignals) {
    struct sigaction before;
    // nohup and background shells ignore some: so does this process then.
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = RemoveTemporaryAndEnd;
    // One at a time in a thread, else the second would wait for the first's lock for ever.
    action.sa_mask = SignalSet();
    sigaction(number, &action, nullptr);
  }
}

}  // namespace convgrad::tools
