// Every operator new of the test program, counted and, when asked, refused. For one file of a
// program.
#ifndef CONVGRAD_TESTS_WATCHED_ALLOCATIONS_H_
#define CONVGRAD_TESTS_WATCHED_ALLOCATIONS_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};
// Allocations that still succeed; negative: all of them. Once one has failed the rest fail too: a
// message about memory must not need any.
std::atomic<int64_t> allocations_left{-1};
std::atomic<int64_t> allocations_refused{0};

void* Allocate(std::size_t bytes) noexcept {
  ++allocations;
  if (allocations_left >= 0 && allocations_left-- <= 0) {
    allocations_left = 0;
    ++allocations_refused;
    return nullptr;
  }
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* AllocateOrThrow(std::size_t bytes) {
  if (void* data = Allocate(bytes)) return data;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) { return AllocateOrThrow(bytes); }
void* operator new[](std::size_t bytes) { return AllocateOrThrow(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }

#endif  // CONVGRAD_TESTS_WATCHED_ALLOCATIONS_H_
