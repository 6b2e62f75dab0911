// The tasks of a pass: which block of which contraction each of them is.
#ifndef CONVGRAD_CPU_BLOCK_TASKS_H_
#define CONVGRAD_CPU_BLOCK_TASKS_H_

#include "cpu/contraction.h"
#include "cpu/tiling.h"

namespace convgrad {

// `copies` contractions (samples times groups times phases), each cut into blocks; first the large
// ones of all of them. Copies that write between each other, `taking_turns` that follow each other,
// do so block by block, so that what they write is still in the caches.
class BlockTasks {
 public:
  struct Place {
    int64_t copy;
    Range rows, o;  // may end beyond those that a phase has
  };

  BlockTasks(const Tiling& t, const Contraction& largest, int64_t copies, int64_t taking_turns = 1)
      : copies_(copies),
        taking_turns_(taking_turns),
        row_block_(t.o_is_n ? t.mb : t.nb),
        o_block_(t.o_is_n ? t.nb : t.mb),
        o_blocks_(CeilDiv(largest.o, o_block_)),
        tail_rows_(t.tail_rows) {
    const int64_t rows = largest.rows();
    tail_from_ = t.tail_from < 0 ? rows : t.tail_from;
    large_ = CeilDiv(tail_from_, row_block_);
    small_ = tail_from_ < rows ? CeilDiv(rows - tail_from_, tail_rows_) : 0;
  }

  int64_t count() const { return copies_ * o_blocks_ * (large_ + small_); }

  Place At(int64_t task) const {
    const int64_t large_tasks = copies_ * o_blocks_ * large_;
    const bool is_large = task < large_tasks;
    if (!is_large) task -= large_tasks;
    const int64_t each = o_blocks_ * (is_large ? large_ : small_), i = task / taking_turns_ % each;
    const int64_t copy = task / taking_turns_ / each * taking_turns_ + task % taking_turns_;
    const int64_t rows = is_large ? row_block_ : tail_rows_;
    const int64_t row = (is_large ? 0 : tail_from_) + i / o_blocks_ * rows;
    const int64_t o = i % o_blocks_ * o_block_;
    return {copy, {row, row + rows}, {o, o + o_block_}};
  }

 private:
  int64_t copies_, taking_turns_, row_block_, o_block_, o_blocks_;
  int64_t tail_from_, tail_rows_;
  int64_t large_, small_;  // blocks of rows
};

}  // namespace convgrad

#endif  // CONVGRAD_CPU_BLOCK_TASKS_H_
