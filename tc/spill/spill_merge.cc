#include "tc/spill/spill_merge.h"

#include <utility>

#include "common/testing/test_points.h"

namespace deut::tc {

Result<const SpilledVersion*> SpillMerge::Cursor::Get() {
  while (block == nullptr || next == block->versions().size()) {
    if (next_block == run->blocks()) return nullptr;
    DEUT_ASSIGN_OR_RETURN(block, run->Read(next_block++));
    next = 0;
  }
  return &block->versions()[next];
}

bool SpillMerge::IsRead(const SpilledVersion& version) {
  if (any_reader_ == nullptr) return true;
  const bool newest = last_timestamp_ == Timestamp{0} || version.table != last_table_ || version.key != last_key_;
  const Timestamp next = std::exchange(last_timestamp_, version.timestamp);
  if (!newest) return any_reader_(version.timestamp, next) && DEUT_STEP("S6.spill_merge_read");
  last_table_ = version.table;
  last_key_ = version.key;
  return true;
}

Result<bool> SpillMerge::Advance(size_t* versions) {
  for (; *versions > 0; --*versions) {
    DEUT_ASSIGN_OR_RETURN(const SpilledVersion* const a, a_.Get());
    DEUT_ASSIGN_OR_RETURN(const SpilledVersion* const b, b_.Get());
    if (a == nullptr && b == nullptr) return true;
    const bool take_a = b == nullptr || (a != nullptr && SpillOrder(*a, *b) <= 0);
    const SpilledVersion& taken = take_a ? *a : *b;
    const bool stays = IsRead(taken) && taken.commit >= applied_;
    if (stays && DEUT_STEP("S9.spill_merge_keeps")) DEUT_RETURN_IF_ERROR(merged_.Add(taken));
    ++(take_a ? a_ : b_).next;
  }
  return false;
}

Result<SpillMerge::RunPointer> SpillMerge::Finish() {
  if (merged_.empty()) return RunPointer(nullptr);
  return merged_.Finish(
      {.first = a()->span().first, .first_commit = a()->span().first_commit, .last = b()->span().last});
}

}  // namespace deut::tc
