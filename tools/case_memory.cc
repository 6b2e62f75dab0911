#include "tools/case_memory.h"

#include <algorithm>

#include "tools/available_memory.h"

namespace convgrad::tools {
namespace {

// From the first to the last element.
double BytesOf(const TensorDesc& desc) {
  double elements = 1, reach = 1;
  for (size_t a = 0; a < desc.extents.size(); ++a) {
    const double extent = static_cast<double>(desc.extents[a]);
    elements *= extent;
    if (!desc.strides.empty()) reach += (extent - 1) * static_cast<double>(desc.strides[a]);
  }
  return std::max(elements, reach) * static_cast<double>(SizeOf(desc.type));
}

}  // namespace

bool FitsThisMachine(const std::vector<TensorDesc>& inputs,
                     const std::vector<TensorDesc>& outputs) {
  double bytes = 0;
  for (const TensorDesc& desc : inputs) bytes += BytesOf(desc);
  for (const TensorDesc& desc : outputs) bytes += BytesOf(desc);
  constexpr double kSmall = 1 << 26;  // not worth a look into files of the system
  return bytes < kSmall || 2 * bytes < AvailableMemory();
}

}  // namespace convgrad::tools
