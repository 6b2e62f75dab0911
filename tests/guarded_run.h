// Runs a case with every tensor and the workspace right against a guard page.
#ifndef CONVGRAD_TESTS_GUARDED_RUN_H_
#define CONVGRAD_TESTS_GUARDED_RUN_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/bits_case.h"
#include "tests/guarded_memory.h"

namespace convgrad::tests {

// Integers, so that every kernel has the same bits whatever the order of its sums.
inline void FillWithIntegers(BitsCase& item) {
  tools::FillIntegers(item.x().buffer, 4, 1);
  tools::FillIntegers(item.w().buffer, 4, 2);
  tools::FillIntegers(item.y().buffer, 4, 3);
  tools::FillIntegers(item.bias(), 4, 4);
}

// What the oracle writes, in one piece: outputs are dense. The case stays as it is, since beta
// reads what the outputs held.
inline std::vector<char> OracleBytes(BitsCase item, float beta) {
  (void)item.Run({.threads = 1, .beta = beta, .kernel = "oracle"});
  return item.OutputBytes();
}

// The output's bytes; empty on an error. Tensors begin so many bytes after where they would.
inline std::vector<char> RunGuarded(BitsCase& item, const Options& options, bool at_end,
                                    size_t shift = 0) {
  Result<Plan> plan = item.MakePlan(options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return {};
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  std::vector<const void*> inputs = item.InputData();
  const std::vector<TensorDesc> in = item.InputDescs(), out = item.OutputDescs();
  for (size_t i = 0; i < in.size(); ++i) {
    memory.push_back(std::make_unique<GuardedMemory>(shift + BytesOf(in[i]), at_end));
    char* const data = memory.back()->data() + shift;
    std::memcpy(data, inputs[i], BytesOf(in[i]));
    inputs[i] = data;
  }
  std::vector<void*> outputs = item.OutputData();
  for (size_t i = 0; i < out.size(); ++i) {
    memory.push_back(std::make_unique<GuardedMemory>(shift + BytesOf(out[i]), at_end));
    char* const data = memory.back()->data() + shift;
    std::memcpy(data, outputs[i], BytesOf(out[i]));
    if (options.beta == 0) std::memset(data, 0xff, BytesOf(out[i]));
    outputs[i] = data;
  }
  const GuardedMemory workspace(static_cast<size_t>(plan->workspace_bytes()), at_end);
  const Status status = plan->Run(inputs, outputs, workspace.data());
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<char> written;
  for (size_t i = in.size(); i < memory.size(); ++i) {
    written.insert(written.end(), memory[i]->data() + shift,
                   memory[i]->data() + memory[i]->bytes());
  }
  return written;
}

// Of real numbers, the very bits of the contraction, at either end of guarded memory; tensors begin
// so many bytes into it.
inline void ExpectGuardedBitsOfContract(BitsCase& item, const Options& options, size_t shift = 0) {
  Options contract = options;
  contract.kernel = "contract";
  BitsCase reference = item;
  ASSERT_NE(reference.Run(contract), 0u);
  const std::vector<char> expected = reference.OutputBytes();
  for (const bool at_end : {false, true}) {
    ASSERT_TRUE(RunGuarded(item, options, at_end, shift) == expected);
  }
}

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_GUARDED_RUN_H_
