#include "tools/tensor_buffer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/numerics.h"
#include "tools/tensor_file.h"

namespace convgrad::tools {
namespace {

constexpr unsigned char kPattern = 0xa5;

// splitmix64: one multiplication chain per number, the same on every machine.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

TensorBuffer::TensorBuffer(const TensorDesc& desc) : desc_(desc), elements_(1) {
  const size_t rank = desc_.extents.size();
  if (desc_.strides.empty()) desc_.strides = DenseStrides(desc_.extents);
  int64_t low = 0, high = 0;
  for (size_t a = 0; a < rank; ++a) {
    elements_ *= desc_.extents[a];
    const int64_t reach = std::max<int64_t>(desc_.extents[a] - 1, 0) * desc_.strides[a];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = SizeOf(desc_.type);
  origin_ = -low * size;
  bytes_.assign(elements_ == 0 ? 1 : static_cast<size_t>((high - low + 1) * size), kPattern);
  if (elements_ == 0) origin_ = 0;
}

TensorBuffer TensorBuffer::Relabeled(const TensorDesc& desc) const {
  TensorBuffer other(desc);
  std::memcpy(other.bytes_.data(), bytes_.data(), std::min(bytes_.size(), other.bytes_.size()));
  return other;
}

Dims TensorBuffer::IndexOf(int64_t flat) const {
  Dims index(desc_.extents.size());
  for (size_t a = index.size(); a-- > 0;) {
    index[a] = flat % desc_.extents[a];
    flat /= desc_.extents[a];
  }
  return index;
}

int64_t TensorBuffer::OffsetOf(const Dims& index) const {
  int64_t offset = 0;
  for (size_t a = 0; a < index.size(); ++a) offset += index[a] * desc_.strides[a];
  return offset;
}

int64_t TensorBuffer::OffsetAt(int64_t flat) const {
  int64_t offset = 0;
  for (size_t a = desc_.extents.size(); a-- > 0; flat /= desc_.extents[a]) {
    offset += flat % desc_.extents[a] * desc_.strides[a];
  }
  return offset;
}

double TensorBuffer::At(int64_t flat) const {
  return LoadWidened(desc_.type, data(), OffsetAt(flat));
}

Dims TensorBuffer::IndexOfStored(int64_t i) const {
  for (int64_t e = 0; e < elements_; ++e) {
    if (origin_ / SizeOf(desc_.type) + OffsetAt(e) == i) return IndexOf(e);
  }
  return {};
}

TensorBuffer TensorBuffer::Magnitudes() const {
  if (desc_.type != DataType::kF32 && desc_.type != DataType::kBF16 &&
      desc_.type != DataType::kF16) {
    return *this;
  }
  TensorDesc desc = desc_;
  desc.type = DataType::kF32;
  TensorBuffer magnitudes(desc);
  for (int64_t i = 0; i < stored(); ++i) {
    StoreAt(magnitudes.bytes_.data(), i, static_cast<float>(std::abs(StoredAt(i))));
  }
  return magnitudes;
}

void TensorBuffer::Set(int64_t flat, double value) {
  StoreRounded(desc_.type, data(), OffsetAt(flat), value);
}

void TensorBuffer::Blank() { std::fill(bytes_.begin(), bytes_.end(), kPattern); }

bool TensorBuffer::BlankElementsAndCheckGaps() {
  const int64_t size = SizeOf(desc_.type);
  if (static_cast<int64_t>(bytes_.size()) == elements_ * size) return true;  // no gaps
  ForEachOffset(desc_.extents, desc_.strides, [&](int64_t offset) {
    std::memset(static_cast<unsigned char*>(data()) + offset * size, kPattern,
                static_cast<size_t>(size));
  });
  return std::all_of(bytes_.begin(), bytes_.end(), [](unsigned char b) { return b == kPattern; });
}

namespace {

// The i-th number depends on seed and i alone: the same tensor has the same data in every layout.
template <class Number>
void Fill(TensorBuffer& tensor, uint64_t seed, const Number& number) {
  if (tensor.elements() == 0) return;
  VisitFloat(tensor.desc().type, [&](auto zero) {
    uint64_t state = seed;
    ForEachOffset(tensor.desc().extents, tensor.desc().strides, [&](int64_t offset) {
      StoreAt(tensor.data(), offset, Narrow<decltype(zero)>(number(Mix(state))));
      state += 0x2545f4914f6cdd1du;
    });
  });
}

}  // namespace

void FillIntegers(TensorBuffer& tensor, int64_t range, uint64_t seed) {
  const uint64_t count = static_cast<uint64_t>(2 * range + 1);
  Fill(tensor, seed, [&](uint64_t random) {
    return static_cast<double>(static_cast<int64_t>(random % count) - range);
  });
}

void FillSparse(TensorBuffer& tensor, double share, uint64_t seed) {
  const double bound = std::min(share, 1.0) * 0x1p63;
  Fill(tensor, seed, [&](uint64_t random) {
    if (static_cast<double>(random >> 1) >= bound) return 0.0;
    return random % 2 == 0 ? 1.0 : -1.0;
  });
}

void FillReals(TensorBuffer& tensor, uint64_t seed) {
  Fill(tensor, seed,
       [](uint64_t random) { return static_cast<double>(static_cast<int64_t>(random)) * 0x1p-63; });
}

void FillShape(TensorBuffer& tensor, const Dims& shape) {
  const int64_t count = std::min(tensor.elements(), static_cast<int64_t>(shape.size()));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t extent = shape[static_cast<size_t>(i)];
    char* place =
        static_cast<char*>(tensor.data()) + tensor.OffsetAt(i) * SizeOf(tensor.desc().type);
    if (tensor.desc().type == DataType::kS32) {
      const auto narrow = static_cast<int32_t>(extent);
      std::memcpy(place, &narrow, sizeof narrow);
    } else {
      std::memcpy(place, &extent, sizeof extent);
    }
  }
}

int64_t ExactRange(double depth) {
  const double range = std::floor(std::sqrt((0x1p24 - 8) / std::max(depth, 1.0)));
  return static_cast<int64_t>(std::clamp(range, 1.0, 4.0));
}

}  // namespace convgrad::tools
