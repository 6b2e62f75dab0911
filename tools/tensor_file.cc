// Tensors in files: finds the file and tensor that are meant, maps files, and writes through a
// temporary file that a signal handler can remove. npy.h and safetensors.h know the formats.
#include "tools/tensor_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/npy.h"
#include "tools/safetensors.h"

namespace convgrad::tools {
namespace {

constexpr std::string_view kNpySuffix = ".npy";
constexpr std::string_view kSafetensorsSuffix = ".safetensors";
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

Status Invalid(const std::string& path, const std::string& problem,
               StatusCode code = StatusCode::kInvalidArgument) {
  return Status(code, path + ": " + problem);
}

Status SystemError(const std::string& path, const std::string& what, int error) {
  return Invalid(path, what + ": " + std::generic_category().message(error));
}

// Memory may run out anywhere below: the one place where that becomes a Status.
template <class Body>
auto WithoutExceptions(const std::string& where, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Invalid(where, "not enough memory", StatusCode::kOutOfMemory);
  } catch (const std::exception& error) {
    return Invalid(where, std::string("failed: ") + error.what());
  }
}

// ---- Which file, which tensor ----

struct Location {
  std::string path;
  bool is_npy = false;
  std::optional<std::string> name;
};

Result<Location> ParseLocation(const std::string& where) {
  if (where.find('\0') != std::string::npos) return Invalid(where, "a path has no zero bytes");
  const size_t split = where.rfind(std::string(kSafetensorsSuffix) + ":");
  if (split != std::string::npos) {
    const size_t end = split + kSafetensorsSuffix.size();
    Location location{where.substr(0, end), false, where.substr(end + 1)};
    if (location.name->empty()) {
      return Invalid(where, "no tensor is named after ':', expected x.safetensors:name");
    }
    return location;
  }
  const bool is_npy = where.ends_with(kNpySuffix);
  if (!is_npy && !where.ends_with(kSafetensorsSuffix)) {
    return Invalid(where.empty() ? "''" : where,
                   "not the name of a tensor file, expected x.npy, x.safetensors or "
                   "x.safetensors:tensor");
  }
  return Location{where, is_npy, std::nullopt};
}

// ---- Reading ----

struct FileBytes {
  std::shared_ptr<const void> storage;
  size_t size = 0;

  std::string_view text() const { return {static_cast<const char*>(storage.get()), size}; }
};

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

std::shared_ptr<std::byte> Allocate(size_t bytes) {
  return {new std::byte[std::max<size_t>(bytes, 1)], std::default_delete<std::byte[]>()};
}

// For file systems that cannot map.
Result<FileBytes> ReadWhole(int file, size_t size, const std::string& path) {
  const std::shared_ptr<std::byte> memory = Allocate(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = pread(file, memory.get() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path, "the file cannot be read", errno);
    if (got == 0) return Invalid(path, "the file became shorter while it was read");
    done += static_cast<size_t>(got);
  }
  return FileBytes{memory, size};
}

Result<FileBytes> MapFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return SystemError(path, "the file cannot be opened", errno);
  struct stat info;
  if (fstat(file.get(), &info) != 0) return SystemError(path, "the file cannot be read", errno);
  if (S_ISDIR(info.st_mode)) return Invalid(path, "this is a directory, expected a file");
  if (!S_ISREG(info.st_mode)) {
    return Invalid(path, "this is a pipe, socket or device, expected a regular file");
  }
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) return FileBytes{};
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) return ReadWhole(file.get(), size, path);
  return FileBytes{
      std::shared_ptr<const void>(
          mapped, [size](const void* start) { munmap(const_cast<void*>(start), size); }),
      size};
}

// The tensor whose data lie at `offset`: within the mapping where that is aligned, else in a copy.
HostTensor TensorAt(const FileBytes& file, int64_t offset, TensorDesc desc, bool swapped_bytes) {
  const std::byte* start = static_cast<const std::byte*>(file.storage.get()) + offset;
  const size_t size = static_cast<size_t>(SizeOf(desc.type));
  const size_t bytes = static_cast<size_t>(DenseBytes(desc).value_or(0));
  if (!swapped_bytes && reinterpret_cast<uintptr_t>(start) % size == 0) {
    return HostTensor{std::move(desc), std::shared_ptr<const void>(file.storage, start)};
  }
  const std::shared_ptr<std::byte> copy = Allocate(bytes);
  if (swapped_bytes) {
    for (size_t at = 0; at < bytes; at += size) {
      std::reverse_copy(start + at, start + at + size, copy.get() + at);
    }
  } else {
    std::copy_n(start, bytes, copy.get());
  }
  return HostTensor{std::move(desc), copy};
}

Result<HostTensor> ReadSafetensors(const FileBytes& file, const Location& location) {
  Result<SafetensorsHeader> header = ParseSafetensorsHeader(file.text(), location.path);
  if (!header.ok()) return header.status();
  const std::vector<SafetensorsEntry>& entries = header->entries;
  if (!location.name && entries.size() != 1) {
    return Invalid(location.path,
                   "name one tensor as " + location.path + ":name; " + Contents(entries));
  }
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& candidate) {
    return !location.name || candidate.name == *location.name;
  });
  if (entry == entries.end()) {
    return Invalid(location.path,
                   "there is no tensor " + QuotedName(*location.name) + "; " + Contents(entries));
  }
  const DataType type = TypeOfSafetensors(entry->dtype);
  if (type == DataType::kUndef) {
    return Invalid(location.path,
                   "tensor " + QuotedName(entry->name) + " has dtype " + QuotedName(entry->dtype) +
                       ", accepted are F32, F16, BF16, I32 and I64",
                   StatusCode::kInvalidType);
  }
  return TensorAt(file, header->data_offset + entry->begin,
                  {type, entry->extents, DenseStrides(entry->extents), {}}, false);
}

// ---- The temporary file, and the signals that remove it ----

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

struct Target {
  std::string path;            // links followed
  std::optional<mode_t> mode;  // of the file that is there
};

// A file beside the target that becomes the target by Commit(), or vanishes. One at a time.
class TemporaryFile {
 public:
  explicit TemporaryFile(const Target& target) : target_(target) {}
  ~TemporaryFile() {
    if (file_ >= 0) close(file_);
    if (!path_.empty()) Forget([this] { unlink(path_.c_str()); });
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Status Create() {
    const size_t slash = target_.path.rfind('/');
    const std::string directory =
        slash == std::string::npos ? "" : target_.path.substr(0, slash + 1);
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

  Status Append(const void* data, int64_t bytes) {
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

  // Synced before the rename, so that after a power cut the target is the old file or the whole
  // of the other. Some network file systems have no fsync: that is no reason to fail.
  Status Commit() {
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

 private:
  Status Failed(int error) const {
    return SystemError(target_.path, "the file cannot be written", error);
  }

  // 0666 and not mkstemp's 0600: the kernel takes the umask off.
  int OpenAndRegister() {
    if (path_.size() >= sizeof(temporary_path)) {
      errno = ENAMETOOLONG;
      return -1;
    }
    const TemporaryLock lock;
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) std::memcpy(temporary_path, path_.c_str(), path_.size() + 1);
    return file;
  }

  // `act` removes the temporary file.
  template <class Act>
  void Forget(Act act) {
    const TemporaryLock lock;
    act();
    temporary_path[0] = '\0';
  }

  Target target_;
  std::string path_;
  int file_ = -1;
};

// ---- Writing ----

Result<Target> FindTarget(const std::string& path) {
  Target target{path, std::nullopt};
  constexpr int kMostLinks = 40;
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat info;
    if (lstat(target.path.c_str(), &info) != 0) {
      if (errno == ENOENT) return target;
      return SystemError(path, "the file cannot be written", errno);
    }
    if (S_ISLNK(info.st_mode)) {
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
    if (!S_ISREG(info.st_mode)) {
      return Invalid(path, "this is a pipe, socket or device, expected a regular file");
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

// That the description is one of memory: counts and byte offsets fit into 64 bits.
Status CheckSource(const std::string& where, const void* data, const TensorDesc& desc) {
  if (!desc.given()) {
    return Invalid(where, "the tensor to write has no type", StatusCode::kInvalidType);
  }
  const std::optional<int64_t> bytes = DenseBytes(desc);
  if (!bytes) {
    return Invalid(where,
                   "the tensor to write has a negative extent or more bytes than fit into 63 bits",
                   StatusCode::kInvalidShape);
  }
  if (*bytes > 0 && data == nullptr) return Invalid(where, "the tensor to write has no data");
  if (desc.strides.empty()) return Status();
  if (desc.strides.size() != desc.extents.size()) {
    return Invalid(where,
                   "the tensor to write has " + std::to_string(desc.strides.size()) +
                       " strides and " + std::to_string(desc.extents.size()) + " extents",
                   StatusCode::kInvalidShape);
  }
  // Of either sign: no sum of steps, in any order, goes beyond the sum of their sizes.
  int64_t reach = 0;
  for (size_t i = 0; i < desc.extents.size(); ++i) {
    int64_t step = 0;
    if (desc.extents[i] <= 1) continue;
    if (__builtin_mul_overflow(desc.strides[i], desc.extents[i] * SizeOf(desc.type), &step) ||
        step == INT64_MIN || __builtin_add_overflow(reach, std::abs(step), &reach)) {
      return Invalid(where, "a stride of the tensor to write reaches beyond 63 bits",
                     StatusCode::kInvalidShape);
    }
  }
  return Status();
}

bool IsDense(const TensorDesc& desc) {
  if (desc.strides.empty()) return true;
  const Dims dense = DenseStrides(desc.extents);
  for (size_t i = 0; i < dense.size(); ++i) {
    if (desc.extents[i] > 1 && desc.strides[i] != dense[i]) return false;
  }
  return true;
}

template <class Word>
void Gather(const std::byte* from, int64_t stride_bytes, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * static_cast<int64_t>(sizeof(Word)), from + i * stride_bytes, sizeof(Word));
  }
}

// Row after row along the last axis, through one buffer.
Status AppendStrided(const std::byte* data, const TensorDesc& desc, TemporaryFile* file) {
  const int64_t size = SizeOf(desc.type);
  const size_t last = desc.extents.size() - 1;
  const int64_t row = desc.extents[last];
  const int64_t row_stride = row > 1 ? desc.strides[last] * size : 0;
  const auto gather = size == 2   ? Gather<uint16_t>
                      : size == 4 ? Gather<uint32_t>
                                  : Gather<uint64_t>;
  constexpr int64_t kBufferBytes = 1 << 20;
  std::vector<std::byte> buffer(kBufferBytes);
  int64_t filled = 0;
  Dims index(desc.extents.size(), 0);
  for (bool more = true; more;) {
    for (int64_t done = 0; done < row;) {
      const int64_t count = std::min(row - done, (kBufferBytes - filled) / size);
      gather(data + done * row_stride, row_stride, count, buffer.data() + filled);
      done += count;
      filled += count * size;
      if (filled < kBufferBytes) continue;
      Status status = file->Append(buffer.data(), std::exchange(filled, 0));
      if (!status.ok()) return status;
    }
    more = false;
    for (size_t axis = last; axis-- > 0 && !more;) {
      const int64_t step = desc.extents[axis] > 1 ? desc.strides[axis] * size : 0;
      more = ++index[axis] < desc.extents[axis];
      data += more ? step : -step * (desc.extents[axis] - 1);
      if (!more) index[axis] = 0;
    }
  }
  return file->Append(buffer.data(), filled);
}

Status AppendTensor(const void* data, const TensorDesc& desc, TemporaryFile* file) {
  const int64_t bytes = DenseBytes(desc).value_or(0);
  if (bytes == 0 || IsDense(desc)) return file->Append(data, bytes);
  return AppendStrided(static_cast<const std::byte*>(data), desc, file);
}

Status WriteNpy(const Target& target, const void* data, const TensorDesc& desc) {
  Result<std::string> header = FormatNpyHeader(desc, target.path);
  if (!header.ok()) return header.status();
  TemporaryFile file(target);
  Status status = file.Create();
  if (status.ok()) status = file.Append(header->data(), static_cast<int64_t>(header->size()));
  if (status.ok()) status = AppendTensor(data, desc, &file);
  if (status.ok()) status = file.Commit();
  return status;
}

Status WriteSafetensors(const Target& target, const std::optional<std::string>& name,
                        const void* data, const TensorDesc& desc) {
  FileBytes kept;
  SafetensorsHeader header;
  if (target.mode) {
    Result<FileBytes> file = MapFile(target.path);
    if (!file.ok()) return file.status();
    kept = *std::move(file);
  }
  // An empty file, as mktemp makes, has nothing to keep.
  if (kept.size > 0) {
    Result<SafetensorsHeader> parsed = ParseSafetensorsHeader(kept.text(), target.path);
    if (!parsed.ok()) return parsed.status();
    header = *std::move(parsed);
  }
  const std::vector<SafetensorsEntry> before = header.entries;
  Result<size_t> place = PlaceTensor(name, desc, target.path, &header.entries);
  if (!place.ok()) return place.status();
  Result<std::string> text = FormatSafetensorsHeader(header, target.path);
  if (!text.ok()) return text.status();

  TemporaryFile file(target);
  Status status = file.Create();
  if (status.ok()) status = file.Append(text->data(), static_cast<int64_t>(text->size()));
  for (size_t i = 0; i < header.entries.size() && status.ok(); ++i) {
    if (i == *place) {
      status = AppendTensor(data, desc, &file);
    } else {
      const char* start = kept.text().data() + header.data_offset + before[i].begin;
      status = file.Append(start, before[i].end - before[i].begin);
    }
  }
  if (status.ok()) status = file.Commit();
  return status;
}

}  // namespace

int64_t HostTensor::elements() const {
  int64_t count = desc.given() ? 1 : 0;
  for (const int64_t extent : desc.extents) count *= extent;
  return count;
}

std::optional<int64_t> DenseBytes(const TensorDesc& desc) {
  // Extents of 0 count as 1 until the end: strides of an empty tensor must not overflow either.
  int64_t bytes = SizeOf(desc.type);
  bool empty = false;
  for (const int64_t extent : desc.extents) {
    if (extent < 0) return std::nullopt;
    empty |= extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes)) return std::nullopt;
  }
  return empty ? 0 : bytes;
}

Dims DenseStrides(const Dims& extents, bool first_axis_fastest) {
  Dims strides(extents.size());
  int64_t stride = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    const size_t axis = first_axis_fastest ? i : extents.size() - 1 - i;
    strides[axis] = stride;
    stride *= std::max<int64_t>(extents[axis], 1);
  }
  return strides;
}

Result<HostTensor> ReadTensor(const std::string& where) {
  return WithoutExceptions(where, [&]() -> Result<HostTensor> {
    Result<Location> location = ParseLocation(where);
    if (!location.ok()) return location.status();
    Result<FileBytes> file = MapFile(location->path);
    if (!file.ok()) return file.status();
    if (!location->is_npy) return ReadSafetensors(*file, *location);
    Result<NpyHeader> header = ParseNpyHeader(file->text(), location->path);
    if (!header.ok()) return header.status();
    return TensorAt(*file, header->data_offset, header->desc, header->swapped_bytes);
  });
}

Status WriteTensor(const std::string& where, const void* data, const TensorDesc& desc) {
  return WithoutExceptions(where, [&]() -> Status {
    Result<Location> location = ParseLocation(where);
    if (!location.ok()) return location.status();
    Status status = CheckSource(where, data, desc);
    if (!status.ok()) return status;
    // Threads take turns: two tensors for one file must both end up in it, and the handler knows
    // one temporary file.
    static std::mutex turns;
    const std::lock_guard<std::mutex> turn(turns);
    Result<Target> target = FindTarget(location->path);
    if (!target.ok()) return target.status();
    if (location->is_npy) return WriteNpy(*target, data, desc);
    return WriteSafetensors(*target, location->name, data, desc);
  });
}

Result<std::string> CheckTarget(const std::string& where) {
  return WithoutExceptions(where, [&]() -> Result<std::string> {
    Result<Location> location = ParseLocation(where);
    if (!location.ok()) return location.status();
    Result<Target> target = FindTarget(location->path);
    if (!target.ok()) return target.status();
    TemporaryFile file(*target);  // removed at the end of this scope
    if (Status status = file.Create(); !status.ok()) return status;
    std::error_code ignored;
    const std::string path = std::filesystem::weakly_canonical(target->path, ignored).string();
    return path + ":" + location->name.value_or("");
  });
}

void RemoveTemporariesOnSignals() {
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
