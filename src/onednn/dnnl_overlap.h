// Whether two tensors share memory, as far as that can be shown at little cost: of what is not
// shown, nothing is said. Channels of one buffer that are interleaved do not share any.
#ifndef CONVGRAD_ONEDNN_DNNL_OVERLAP_H_
#define CONVGRAD_ONEDNN_DNNL_OVERLAP_H_

#include <cstddef>
#include <cstdint>

#include "oneapi/dnnl/dnnl_graph_types.h"

namespace convgrad::onednn {

// The elements of a tensor, in bytes. Empty where the tensor is, where there is no pointer, and
// where the size is not known.
class Region {
 public:
  Region() = default;
  Region(const dnnl_graph_logical_tensor_t& tensor, const void* data);
  Region(const void* data, size_t bytes);

  // True only if some byte is of both.
  bool Shares(const Region& other) const;

 private:
  struct Axis {
    uint64_t stride = 0;  // bytes
    uint64_t steps = 0;   // extent - 1, at least 1
  };

  bool IsSolid() const { return bytes_ == element_ * elements_; }
  // Whether an element has bytes in [begin, end).
  bool HasElementIn(uint64_t begin, uint64_t end) const;
  // Whether elements of both meet, as far as a search of bounded length finds out.
  bool Meets(const Region& other) const;

  uint64_t begin_ = 0;
  uint64_t bytes_ = 0;     // from the first to past the last
  uint64_t element_ = 1;   // bytes
  uint64_t elements_ = 0;  // that are distinct, if the axes nest; else 0
  int rank_ = 0;
  Axis axes_[DNNL_MAX_NDIMS];  // the largest stride first
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_DNNL_OVERLAP_H_
