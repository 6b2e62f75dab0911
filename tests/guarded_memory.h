// Memory whose first or last byte touches a page that must not be touched: one byte beyond is a
// fault, not a wrong number that nobody sees.
#ifndef CONVGRAD_TESTS_GUARDED_MEMORY_H_
#define CONVGRAD_TESTS_GUARDED_MEMORY_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace convgrad::tests {

class GuardedMemory {
 public:
  GuardedMemory(size_t bytes, bool at_end) : bytes_(bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inner = (bytes + page - 1) / page * page;
    length_ = inner + 2 * page;
    base_ =
        static_cast<char*>(mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    // Nothing of an empty tensor, which qemu 7.2 refuses.
    if (inner > 0) {
      EXPECT_EQ(mprotect(base_ + page, inner, PROT_READ | PROT_WRITE), 0);
    }
    data_ = base_ + page + (at_end ? inner - bytes : 0);
  }
  ~GuardedMemory() { munmap(base_, length_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_, length_ = 0;
  char* base_ = nullptr;
  char* data_ = nullptr;
};

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_GUARDED_MEMORY_H_
