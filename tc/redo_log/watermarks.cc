#include "tc/redo_log/watermarks.h"

#include <algorithm>

namespace deut::tc {

Watermarks::Watermarks(Lsn redo_start, Lsn end)
    : redo_start_(redo_start.value), durable_(end.value), consumed_(end.value) {
  // Recovery refuses a log whose redo start lies beyond its end.
  DEUT_CHECK(redo_start <= end);
}

void Watermarks::AdvanceRedoStart(const RedoStart& from, const RedoStart& to) {
  DEUT_CHECK(from.lsn == redo_start());
  DEUT_CHECK(from.lsn <= to.lsn);
  DEUT_CHECK(to.lsn <= durable());
  for (const DcPosition& position : to.stable) {
    // stable <= applied <= shipped < durable
    DEUT_CHECK(position.stable.commit < durable());
    const auto before = std::ranges::find(from.stable, position.dc, &DcPosition::dc);
    // Otherwise the DC has lost updates that an earlier redo start has allowed to be trimmed.
    DEUT_CHECK(before == from.stable.end() || before->stable <= position.stable);
  }
  redo_start_.store(to.lsn.value, std::memory_order_seq_cst);
}

void Watermarks::CheckTrim(Lsn cut) const { DEUT_CHECK(cut <= redo_start()); }

void DcWatermarks::Ship(Position to) {
  if (to <= shipped_) return;
  // The DC would keep an update that a crash of the TC takes out of the log (S1, D1).
  DEUT_CHECK(to.commit < log_.durable());
  shipped_ = to;
}

bool DcWatermarks::Acknowledge(Position applied, Position stable) {
  if (stable > applied || applied > shipped_) return false;
  // Applied rises first, so that no reader that loads `stable` first ever sees it beyond `applied`.
  applied_.store(std::max(this->applied(), applied), std::memory_order_seq_cst);
  stable_.store(std::max(this->stable(), stable), std::memory_order_seq_cst);
  DEUT_DCHECK(this->stable() <= this->applied());
  DEUT_DCHECK(this->applied() <= shipped_);
  return true;
}

void DcWatermarks::BeginIncarnation(Position applied, Position stable) {
  DEUT_CHECK(stable <= applied);
  // An earlier process may have sent more than this one knows of.
  shipped_ = std::max(shipped_, applied);
  applied_.store(applied, std::memory_order_seq_cst);
  stable_.store(stable, std::memory_order_seq_cst);
}

}  // namespace deut::tc
