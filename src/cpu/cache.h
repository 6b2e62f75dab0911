// How large this CPU's caches are, for blocks that fit.
#ifndef CONVGRAD_CPU_CACHE_H_
#define CONVGRAD_CPU_CACHE_H_

#include <cstdint>

namespace convgrad {

// Bytes of the second-level cache of one core, as the system tells; 1 MiB where it does not. Asked
// once.
int64_t SecondLevelCacheBytes();

}  // namespace convgrad

#endif  // CONVGRAD_CPU_CACHE_H_
