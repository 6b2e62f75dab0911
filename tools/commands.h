// The subcommands of convgrad. Each returns an exit code; a Status that is not ok() becomes one
// line on standard error and exit code 2.
#ifndef CONVGRAD_TOOLS_COMMANDS_H_
#define CONVGRAD_TOOLS_COMMANDS_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/peer.h"
#include "convgrad/plan.h"
#include "convgrad/status.h"
#include "tools/case_check.h"

namespace convgrad::tools {

struct RunRequest {
  std::vector<std::string> words;  // an operation line whose arguments are files
  std::string out;                 // of output 0
  std::string dtype;               // empty: the files' own
  std::string out_dtype;           // empty: the inputs'
  Options options{};
};
Result<int> RunOperation(const RunRequest& request);

struct VerifyRequest {
  std::vector<std::string> words;  // problem lines, or one operation line
  bool lenient = false;            // what cannot be run is ignored or skipped, and counted
  Options options{};
  uint64_t seed = 1;
  decltype(CheckRequest::tamper) tamper = {};  // for tests: makes a problem fail
};
// Exit code 1 when a result is wrong; a problem that is not legal is bad input.
Result<int> VerifyProblems(const VerifyRequest& request);

struct ExplainRequest {
  std::vector<std::string> words;  // problem lines, an operation line or a canonical problem
  bool lenient = false;            // as in verify
  Options options{};
};
Result<int> ExplainProblems(const ExplainRequest& request);

struct GraphRequest {
  std::vector<std::string> words;  // graphs, options of benchdnn's graph driver, --dump
  Options options{};
  uint64_t seed = 1;
  bool reals = false;
  decltype(CheckRequest::tamper) tamper = {};  // for tests: makes an operation fail
};
// Exit code 1 when a result is wrong; a graph that is malformed or not legal is bad input.
Result<int> RunGraphs(const GraphRequest& request);

enum class OpsFormat { kText, kJson, kMarkdown };
int ListOperations(OpsFormat format);

struct BenchRequest {
  std::vector<std::string> words;  // as in verify
  bool lenient = false;            // as in verify
  std::optional<int> random;       // so many random problems instead; words may be --match=REGEX
  uint64_t seed = 1;               // of the random problems
  std::string threads = "0";       // a list; 0: all
  Options options{};               // without threads
  std::string json;                // a file; empty: none
  std::vector<std::string> peers;  // names, or lists of them
  int repetitions = 0;             // 0: what fits into `seconds`
  // For each problem and number of threads; nothing: 1, for a random one 0.05.
  std::optional<double> seconds;
  std::span<const bench::PeerInfo> known_peers;
};
// Exit code 1 when a peer's result differs from convgrad's.
Result<int> BenchProblems(const BenchRequest& request);

struct ReplayRequest {
  std::string log;       // a file, or - for standard input
  std::string threads;   // a list; 0: all; empty: as many as the log says
  Options options{};     // without threads
  bool verify = false;   // each problem against the oracle, too
  uint64_t seed = 1;     // of the data for that
  std::string json;      // a file; empty: none
  int repetitions = 0;   // 0: what fits into `seconds`
  double seconds = 0.2;  // for each problem and number of threads
};
// Exit code 1 when a result is wrong.
Result<int> ReplayLog(const ReplayRequest& request);

// The limits of this machine, measured on one core and on all.
int PrintPeaks(bool json);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_COMMANDS_H_
