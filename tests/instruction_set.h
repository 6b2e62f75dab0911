// Runs on one of Highway's instruction sets, then leaves its choice as it was.
#ifndef CONVGRAD_TESTS_INSTRUCTION_SET_H_
#define CONVGRAD_TESTS_INSTRUCTION_SET_H_

#include <cstdint>

// Before any header of Highway: which instruction sets there are.
#include "cpu/targets.h"
// Then the rest.
#include "hwy/targets.h"

namespace convgrad::tests {

class InstructionSet {
 public:
  explicit InstructionSet(int64_t target) { Pick(target); }
  ~InstructionSet() { Pick(0); }

 private:
  static void Pick(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
  }
};

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_INSTRUCTION_SET_H_
