// How much memory a process may still take without being ended for it.
#ifndef CONVGRAD_TOOLS_AVAILABLE_MEMORY_H_
#define CONVGRAD_TOOLS_AVAILABLE_MEMORY_H_

namespace convgrad::tools {

// Bytes: what the machine has free or can free, and no more than its control group leaves.
double AvailableMemory();

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_AVAILABLE_MEMORY_H_
