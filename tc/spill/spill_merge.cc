#include "tc/spill/spill_merge.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {

SpillMerge::SpillMerge(std::vector<RunPointer> runs, Lsn applied, AnyReader any_reader, SpilledRun::Builder merged)
    : runs_(std::move(runs)), applied_(applied), any_reader_(std::move(any_reader)), merged_(std::move(merged)) {
  DEUT_CHECK(!runs_.empty());
  for (const RunPointer& run : runs_) cursors_.push_back({.run = run.get()});
}

bool SpillMerge::Merges(const RunPointer& run) const { return std::ranges::find(runs_, run) != runs_.end(); }

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

Status SpillMerge::FindFirst(Cursor** first) {
  *first = nullptr;
  const SpilledVersion* least = nullptr;
  for (Cursor& cursor : cursors_) {
    DEUT_ASSIGN_OR_RETURN(const SpilledVersion* const version, cursor.Get());
    if (version == nullptr || (least != nullptr && SpillOrder(*least, *version) <= 0)) continue;
    least = version;
    *first = &cursor;
  }
  return Status::Ok();
}

Result<bool> SpillMerge::Advance(size_t* versions) {
  for (; *versions > 0; --*versions) {
    Cursor* first = nullptr;
    DEUT_RETURN_IF_ERROR(FindFirst(&first));
    if (first == nullptr) return true;
    const SpilledVersion& taken = first->block->versions()[first->next];
    const bool stays = IsRead(taken) && taken.commit >= applied_;
    if (stays && DEUT_STEP("S9.spill_merge_keeps")) DEUT_RETURN_IF_ERROR(merged_.Add(taken));
    ++first->next;
  }
  return false;
}

Result<SpillMerge::RunPointer> SpillMerge::Finish() {
  if (merged_.empty()) return RunPointer(nullptr);
  const SpilledRun::CommitSpan& front = runs_.front()->span();
  return merged_.Finish({.first = front.first, .first_commit = front.first_commit, .last = runs_.back()->span().last});
}

}  // namespace deut::tc
