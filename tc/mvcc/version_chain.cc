#include "tc/mvcc/version_chain.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

RecordVersion* Older(const RecordVersion* version) { return version->older.load(std::memory_order_seq_cst); }

// Retires the versions from `first` up to, not including, `end`.
void RetireUntil(RecordVersion* first, const RecordVersion* end, ReclamationDomain& domain) {
  while (first != end) {
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

bool InstallVersion(RecordEntry& entry, HeadWord::Value& seen, RecordVersion* replacement, Timestamp raise_to,
                    ReclamationDomain& domain) {
  DEUT_POINT("chain.install.before_cas");
  const HeadWord::Value before = seen;
  const RecordVersion* const live = Older(replacement);
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

void RemoveDeadAndApplied(RecordEntry& entry, ReclamationDomain& domain) {
  HeadWord::Value seen = entry.word.Load();
  while (!seen.dead()) {
    RecordVersion* rest = LiveHead(seen.head);
    if (rest != nullptr && rest->applied) rest = Older(rest);
    if (rest == seen.head) return;
    DEUT_POINT("chain.remove.before_cas");
    if (DEUT_CAS_FAILS("chain.remove.cas")) {
      seen = entry.word.Load();
      continue;
    }
    const HeadWord::Value before = seen;
    if (entry.word.CompareExchange(seen, before.WithHead(rest))) {
      RetireUntil(before.head, rest, domain);
      return;
    }
  }
}

void CollectApplied(RecordEntry& entry, RecordVersion* version, ReclamationDomain& domain) {
  RetireUntil(version->older.exchange(nullptr, std::memory_order_seq_cst), nullptr, domain);
  version->applied = true;
  RemoveDeadAndApplied(entry, domain);
}

}  // namespace deut::tc
