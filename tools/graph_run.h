// Runs a graph: fills what comes from outside, computes the operations that convgrad has in order,
// hands what one writes to those that read it, and checks each against the formulas and the oracle.
// Prints nothing and reads no files.
#ifndef CONVGRAD_TOOLS_GRAPH_RUN_H_
#define CONVGRAD_TOOLS_GRAPH_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "convgrad/plan.h"
#include "convgrad/status.h"
#include "onednn/graph_model.h"
#include "tools/case_check.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tools {

// Refused: the kernel that was asked for cannot run it.
enum class Verdict { kPassed, kFailed, kSkipped, kRefused };

struct OpReport {
  Verdict verdict = Verdict::kSkipped;
  const onednn::GraphOp* op = nullptr;
  std::string shapes;              // src 0:2x3x8x8, weights 1:4x3x3x3 -> dst 2:2x4x8x8 f32
  std::string reason;              // of one that did not pass, a sentence
  std::vector<std::string> notes;  // inputs that are filled because nothing here writes them
  CheckReport check;               // of one that ran
};

struct GraphRunRequest {
  Options options{};
  uint64_t seed = 1;
  bool reals = false;         // fill with reals in [-1, 1] and not with small integers
  bool skip_illegal = false;  // an operation that breaks a rule is skipped, else it is an error
  bool keep_tensors = false;  // all of them, for tests
  // Called when the graph is known to be sound, before anything runs.
  std::function<void()> opened{};
  // Called for each operation when it is done, in the order in which they run.
  std::function<void(const OpReport&)> report{};
  decltype(CheckRequest::tamper) tamper{};
};

// The tensors by id, where they are to be kept. Weights beside a tensor that an operation of the
// graph has written are sparse, so that numbers grow little from one to the next. An error: the
// graph does not hang together, an operation is illegal, or its tensors do not fit into memory.
Result<std::map<size_t, TensorBuffer>> RunGraph(const std::vector<onednn::GraphOp>& ops,
                                                const GraphRunRequest& request);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_GRAPH_RUN_H_
