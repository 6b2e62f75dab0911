#include "tools/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace convgrad::tools {
namespace {

// The number after `key`, or the file's first word; -1: none.
double NumberIn(const char* path, const std::string& key) {
  std::ifstream file(path);
  double number = -1;
  if (key.empty()) return file >> number ? number : -1;
  for (std::string word; file >> word;) {
    if (word == key && file >> number) return number;
  }
  return -1;
}

}  // namespace

double AvailableMemory() {
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  double bytes = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  const double kilobytes = NumberIn("/proc/meminfo", "MemAvailable:");
  if (kilobytes >= 0) bytes = std::min(bytes, kilobytes * 1024);
  const double most = NumberIn("/sys/fs/cgroup/memory.max", "");  // "max": no number, no limit
  const double used = NumberIn("/sys/fs/cgroup/memory.current", "");
  if (most >= 0 && used >= 0) bytes = std::min(bytes, std::max(most - used, 0.0));
  return bytes;
}

}  // namespace convgrad::tools
