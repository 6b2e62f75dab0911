// What must hold for every input: else the fuzzer ends, and keeps the input.
#ifndef CONVGRAD_FUZZ_REQUIRE_H_
#define CONVGRAD_FUZZ_REQUIRE_H_

#include <cstdio>
#include <cstdlib>

#include "convgrad/status.h"

namespace convgrad::fuzz {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// A message is one line that says something.
inline void RequireSentence(const Status& status) {
  if (status.ok()) return;
  Require(!status.message().empty(), "an error has a message");
  Require(status.message().find('\n') == std::string::npos, "a message is one line");
}

}  // namespace convgrad::fuzz

#endif  // CONVGRAD_FUZZ_REQUIRE_H_
