#include "cpu/cache.h"

#include <algorithm>
#include <cstdio>

#if defined(__linux__)
#include <unistd.h>
#endif

namespace convgrad {
namespace {

// "1024K" of sysfs, which Arm has and sysconf does not.
int64_t FromSysfs() {
  std::FILE* file = std::fopen("/sys/devices/system/cpu/cpu0/cache/index2/size", "r");
  if (file == nullptr) return 0;
  long size = 0;
  char unit = 0;
  const int read = std::fscanf(file, "%ld%c", &size, &unit);
  std::fclose(file);
  if (read < 1) return 0;
  return int64_t{size} * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
}

int64_t Ask() {
  int64_t bytes = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
  bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
  if (bytes <= 0) bytes = FromSysfs();
  if (bytes <= 0) bytes = 1 << 20;
  // A cache that many cores share says little about one of them.
  return std::clamp<int64_t>(bytes, 256 << 10, 2 << 20);
}

}  // namespace

int64_t SecondLevelCacheBytes() {
  static const int64_t bytes = Ask();
  return bytes;
}

}  // namespace convgrad
