// The order of a sum, written down a second time: see FusedSums. What the library computes in f32
// must have the same bits; so must f16, which is widened when it is read.
#include <gtest/gtest.h>

#include "tests/bits_table.h"
#include "tests/in_order.h"

namespace convgrad::tests {
namespace {

TEST(Order, IsTheOneThatIsWrittenDown) {
  for (const BitsRow& row : kBitsTable) {
    for (const OpKind kind : kSixNames) {
      BitsCase item(row.problem, kind, DataType::kF32, {}, true);
      ExpectInOrder<FusedSums>(row.problem, kind, item);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Order, OfF16IsThatOfF32) {
  for (const BitsRow& row : kBitsTable) {
    for (const OpKind kind : kSixNames) {
      for (const DataType out : {DataType::kF16, DataType::kF32}) {
        if (out == DataType::kF32 && !WritesWeights(kind)) continue;
        BitsCase item(row.problem, kind, DataType::kF16, {}, true, out);
        ExpectInOrder<FusedSums>(row.problem, kind, item);
        BitsCase plain(row.problem, kind, DataType::kF16, {}, false, out);
        ExpectRestInOrder<FusedSums>(row.problem, kind, plain);
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
