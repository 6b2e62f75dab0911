#include "bench/peer.h"

namespace convgrad::bench {

#if defined(CONVGRAD_PEER_ONEDNN)
std::unique_ptr<Peer> MakeOnednnPeer(const PeerRequest& request, std::string* why);
#else
constexpr std::unique_ptr<Peer> (*MakeOnednnPeer)(const PeerRequest&, std::string*) = nullptr;
#endif

#if defined(CONVGRAD_PEER_BLAS)
std::unique_ptr<Peer> MakeBlasPeer(const PeerRequest& request, std::string* why);
#else
constexpr std::unique_ptr<Peer> (*MakeBlasPeer)(const PeerRequest&, std::string*) = nullptr;
#endif

std::span<const PeerInfo> Peers() {
  static const PeerInfo kPeers[] = {
      {"onednn", "libdnnl-dev", MakeOnednnPeer},
      {"blas", "libopenblas-dev", MakeBlasPeer},
  };
  return kPeers;
}

}  // namespace convgrad::bench
