// Times one case: convgrad, and its peers in turns with it. Knows no table and no file.
#ifndef CONVGRAD_TOOLS_BENCH_CASE_H_
#define CONVGRAD_TOOLS_BENCH_CASE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/peer.h"
#include "convgrad/plan.h"
#include "tools/operation_line.h"

namespace convgrad::tools {

struct Timing {
  double seconds = 0;   // of one run: the median
  double spread = 0;    // (90th - 10th percentile) / median
  int repetitions = 0;  // samples, each of one or more runs
};

struct PeerTiming {
  std::string name;
  std::optional<Timing> timing;  // nothing: `note` says why
  bool wrong = false;
  std::string note;
  std::string implementation;  // as the peer calls it
};

struct BenchRow {
  std::string problem;
  std::string op;
  DataType type = DataType::kF32;      // of the inputs
  DataType out_type = DataType::kF32;  // of the outputs
  std::string data_format;  // NXC or NCX where src and dst lie so, densely; else "strided"
  bool per_sample = false;  // a gradient for each image
  int threads = 1;
  std::string refusal;  // not empty: no plan was made, the rest is empty
  std::string kernel;
  int64_t workspace_bytes = 0;
  double flops = 0;         // of products inside the tensors
  double padded_flops = 0;  // as most libraries count: products with padding, too
  double bytes = 0;         // of the tensors, those that a run needs, each once
  Timing timing;
  double peak_flops = 0;  // per second, of its type and threads, measured in turns with it
  std::vector<PeerTiming> peers;
  double preemptions = 0;  // per second, while samples were taken: other programs had a core
};

struct BenchSettings {
  Options options;      // threads are at least 1
  int repetitions = 0;  // 0: as many as fit into `seconds`, at least kLeastRepetitions
  double seconds = 1;
  std::vector<bench::PeerInfo> peers;  // all in this build
};

constexpr int kLeastRepetitions = 3;
constexpr int kMostRepetitions = 1000;

// All contestants compute the same, once, before they are timed: a peer whose result differs is
// marked wrong and not timed.
BenchRow BenchCase(const Case& item, const BenchSettings& settings);

// Of any order.
Timing Summarize(const std::vector<double>& seconds);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_BENCH_CASE_H_
