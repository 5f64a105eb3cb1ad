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

}  // namespace deut::tc
