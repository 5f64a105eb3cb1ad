#include "tc/mvcc/version_chain.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

RecordVersion* Older(const RecordVersion* version) { return version->older.load(std::memory_order_seq_cst); }

// Retires the versions from `first` up to, not including, `end`. Stops also at the end of the chain: the collector may have cut the link
// from the last dead version to `end` meanwhile.
void RetireUntil(RecordVersion* first, const RecordVersion* end, ReclamationDomain& domain) {
  while (first != end && first != nullptr) {
    RecordVersion* const older = Older(first);
    RecordVersion::Retire(first, domain);
    first = older;
  }
}

}  // namespace

Visible FindVisible(const RecordVersion* head, const ReaderView& reader) {
  for (const RecordVersion* version = head; version != nullptr; version = Older(version)) {
    if (version->withdrawn.load(std::memory_order_seq_cst) && !DEUT_OMITTED("R4.withdrawn")) continue;
    if (version->transaction == reader.self) {
      if (version->sequence < reader.own_below) return {Visible::Kind::kVersion, version};
      continue;
    }
    const bool earlier = version->transaction->timestamp() < reader.timestamp;
    switch (version->transaction->status()) {
      case TransactionStatus::kAborted:
        continue;
      case TransactionStatus::kActive:
      case TransactionStatus::kCommitting:
        if (earlier && !DEUT_OMITTED("R2.record_conflict")) return {Visible::Kind::kConflict, version};
        continue;
      case TransactionStatus::kCommitted:
        if (earlier) return {Visible::Kind::kVersion, version};
        continue;
    }
  }
  return {};
}

RecordVersion* LiveHead(RecordVersion* head) {
  while (head != nullptr && head->dead()) head = Older(head);
  return head;
}

RecordVersion* LiveHead(const RecordEntry& entry, HeadWord::Value& seen) {
  for (;;) {
    DEUT_POINT("chain.live_head.loaded");
    RecordVersion* const live = LiveHead(seen.head);
    if (live == seen.head) return live;
    // Looked past dead versions: only what the word still says afterwards counts (head_word.h, CUT).
    const HeadWord::Value again = entry.word.Load();
    if (again == seen || DEUT_OMITTED("R4.look_again")) return live;
    seen = again;
  }
}

bool InstallVersion(RecordEntry& entry, HeadWord::Value& seen, RecordVersion* replacement, Timestamp raise_to,
                    ReclamationDomain& domain) {
  DEUT_POINT("chain.install.before_cas");
  const HeadWord::Value before = seen;
  const RecordVersion* const live = Older(replacement);  // read now: the collector may cut it once it is in the chain
  HeadWord::Value after = before.WithHead(replacement);
  if (before.last_read() < raise_to) after = after.WithLastRead(raise_to);
  if (DEUT_CAS_FAILS("chain.install.cas")) {
    seen = entry.word.Load();
    return false;
  }
  if (!entry.word.CompareExchange(seen, after)) return false;
  RetireUntil(before.head, live, domain);
  return true;
}

void RemoveDeadVersions(RecordEntry& entry, ReclamationDomain& domain) {
  HeadWord::Value seen = entry.word.Load();
  while (!seen.dead()) {
    RecordVersion* const live = LiveHead(seen.head);
    if (live == seen.head) return;
    DEUT_POINT("chain.remove_dead.before_cas");
    if (DEUT_CAS_FAILS("chain.remove_dead.cas")) {
      seen = entry.word.Load();
      continue;
    }
    const HeadWord::Value before = seen;
    if (entry.word.CompareExchange(seen, before.WithHead(live))) {
      RetireUntil(before.head, live, domain);
      return;
    }
  }
}

void CutChain(RecordEntry& entry, RecordVersion* version, ReclamationDomain& domain) {
  bool cut = false;
  for (HeadWord::Value seen = entry.word.Load(); !seen.dead(); seen = entry.word.Load()) {
    RecordVersion* above = nullptr;
    RecordVersion* found = seen.head;
    while (found != nullptr && found != version) {
      above = found;
      found = Older(found);
    }
    if (found == nullptr && !cut) return;
    HeadWord::Value after = seen;
    if (found != nullptr && above == nullptr) {
      after.head = nullptr;
    } else {
      // Cut, then change the word: an installer that read the chain before the cut fails, or has come first, and then the new head is
      // looked at again. The last round finds nothing left to cut and still has to change the word.
      if (found != nullptr) above->older.store(nullptr, std::memory_order_seq_cst);
      cut = true;
      after.bits ^= HeadWord::kCut;
    }
    DEUT_POINT("chain.cut.before_cas");
    if (DEUT_CAS_FAILS("chain.cut.cas")) continue;
    if (entry.word.CompareExchange(seen, after)) {
      RetireUntil(version, nullptr, domain);
      return;
    }
  }
}

}  // namespace deut::tc
