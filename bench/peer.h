// Other libraries that convgrad bench can time beside convgrad. Only the command links them; what
// is not installed when convgrad is configured is not in the build.
#ifndef CONVGRAD_BENCH_PEER_H_
#define CONVGRAD_BENCH_PEER_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/problem.h"

namespace convgrad::bench {

struct PeerRequest {
  Problem problem;
  bool transposed = false;  // the operation is of the ConvTranspose family
  int spatial = 2;          // axes that the operation has; the last of the problem's
  // They outlive the peer. The peer writes `out` and `bias_out` with beta 0.
  Operands operands;
  int threads = 1;
};

// One operation, ready to run.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void Run() = 0;
  // Called after runs that were timed: stops threads that would wait for work at others' cost.
  virtual void Rest() {}
  // What the library says that it runs, where it does.
  virtual std::string implementation() const { return ""; }
};

struct PeerInfo {
  std::string_view name;     // for --peer
  std::string_view package;  // Debian's name of what it needs
  // Null: not in this build. Gives null, and one sentence, where the library does not offer the
  // operation on tensors that lie as these do.
  std::unique_ptr<Peer> (*make)(const PeerRequest& request, std::string* why) = nullptr;
};

std::span<const PeerInfo> Peers();

}  // namespace convgrad::bench

#endif  // CONVGRAD_BENCH_PEER_H_
