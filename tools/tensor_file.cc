// Tensors in files: finds the file and tensor that are meant, maps files, and writes through a
// temporary file that a signal handler can remove. npy.h and safetensors.h know the formats.
#include "tools/tensor_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
#include "tools/temporary_file.h"

namespace convgrad::tools {
namespace {

constexpr std::string_view kNpySuffix = ".npy";
constexpr std::string_view kSafetensorsSuffix = ".safetensors";

Status Invalid(const std::string& path, const std::string& problem,
               StatusCode code = StatusCode::kInvalidArgument) {
  return Status(code, path + ": " + problem);
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

Result<HostTensor> ReadFrom(const FileBytes& file, const Location& location) {
  if (!location.is_npy) return ReadSafetensors(file, location);
  Result<NpyHeader> header = ParseNpyHeader(file.text(), location.path);
  if (!header.ok()) return header.status();
  return TensorAt(file, header->data_offset, header->desc, header->swapped_bytes);
}

// ---- Writing ----

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

// A .safetensors file with one more, or one other, tensor: what is kept, and the header to write.
struct SafetensorsUpdate {
  FileBytes kept;
  std::vector<SafetensorsEntry> before;
  SafetensorsHeader header;
  size_t place = 0;  // of the tensor among header.entries
  std::string text;  // of the header
};

Result<SafetensorsUpdate> PlanUpdate(const Target& target, const std::optional<std::string>& name,
                                     const TensorDesc& desc) {
  SafetensorsUpdate update;
  if (target.mode) {
    Result<FileBytes> file = MapFile(target.path);
    if (!file.ok()) return file.status();
    update.kept = *std::move(file);
  }
  // An empty file, as mktemp makes, has nothing to keep.
  if (update.kept.size > 0) {
    Result<SafetensorsHeader> parsed = ParseSafetensorsHeader(update.kept.text(), target.path);
    if (!parsed.ok()) return parsed.status();
    update.header = *std::move(parsed);
  }
  update.before = update.header.entries;
  Result<size_t> place = PlaceTensor(name, desc, target.path, &update.header.entries);
  if (!place.ok()) return place.status();
  update.place = *place;
  Result<std::string> text = FormatSafetensorsHeader(update.header, target.path);
  if (!text.ok()) return text.status();
  update.text = *std::move(text);
  return update;
}

Status WriteSafetensors(const Target& target, const std::optional<std::string>& name,
                        const void* data, const TensorDesc& desc) {
  Result<SafetensorsUpdate> update = PlanUpdate(target, name, desc);
  if (!update.ok()) return update.status();
  const SafetensorsHeader& header = update->header;
  TemporaryFile file(target);
  Status status = file.Create();
  if (status.ok())
    status = file.Append(update->text.data(), static_cast<int64_t>(update->text.size()));
  for (size_t i = 0; i < header.entries.size() && status.ok(); ++i) {
    if (i == update->place) {
      status = AppendTensor(data, desc, &file);
    } else {
      const char* start = update->kept.text().data() + header.data_offset + update->before[i].begin;
      status = file.Append(start, update->before[i].end - update->before[i].begin);
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
    return ReadFrom(*file, *location);
  });
}

Result<HostTensor> ReadTensor(const std::string& where, std::string_view bytes) {
  return WithoutExceptions(where, [&]() -> Result<HostTensor> {
    Result<Location> location = ParseLocation(where);
    if (!location.ok()) return location.status();
    const std::shared_ptr<const void> owner;  // none: it only lends its type
    return ReadFrom(FileBytes{{owner, bytes.data()}, bytes.size()}, *location);
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

Result<std::string> CheckTarget(const std::string& where, const TensorDesc& desc) {
  return WithoutExceptions(where, [&]() -> Result<std::string> {
    Result<Location> location = ParseLocation(where);
    if (!location.ok()) return location.status();
    Result<Target> target = FindTarget(location->path);
    if (!target.ok()) return target.status();
    std::error_code ignored;
    // Of a file that does not exist yet, only a path from the root says which one it is.
    const std::filesystem::path path = std::filesystem::absolute(target->path, ignored);
    std::string place = std::filesystem::weakly_canonical(path, ignored).string();
    if (!location->is_npy) {
      Result<SafetensorsUpdate> update = PlanUpdate(*target, location->name, desc);
      if (!update.ok()) return update.status();
      place += ":" + update->header.entries[update->place].name;
    }
    TemporaryFile file(*target);  // removed at the end of this scope
    if (Status status = file.Create(); !status.ok()) return status;
    return place;
  });
}

}  // namespace convgrad::tools
