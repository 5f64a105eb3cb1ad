#include "tc/mvcc/version_chain.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/newest_versions.h"

namespace deut::tc {
namespace {

RecordVersion* Older(const RecordVersion* version) { return version->older.load(std::memory_order_seq_cst); }

// R4: a link leads to an earlier version, also from a dead one, and also after the collector has changed it.
bool InOrder(const RecordVersion& newer, const RecordVersion* older) {
  return older == nullptr || older->version() < newer.version();
}

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
  const RecordVersion* above = nullptr;
  for (const RecordVersion* version = head; version != nullptr; version = Older(version)) {
    DEUT_DCHECK(above == nullptr || InOrder(*above, version));
    above = version;
    const bool own = version->transaction == reader.self;
    const bool too_early = DEUT_OMITTED("R4.status_first") && version->withdrawn.load(std::memory_order_seq_cst);
    DEUT_POINT("chain.look.first");
    const TransactionStatus status = own ? TransactionStatus::kActive : version->transaction->status();
    DEUT_POINT("chain.look.status_loaded");
    // After the status: the owner withdraws a version before it commits, so a reader that finds it committed finds it withdrawn, too.
    const bool withdrawn =
        DEUT_OMITTED("R4.status_first") ? too_early : version->withdrawn.load(std::memory_order_seq_cst);
    if (withdrawn && DEUT_STEP("R4.withdrawn")) continue;
    if (own) {
      if (version->sequence < reader.own_below) return {Visible::Kind::kVersion, version};
      continue;
    }
    const bool earlier = version->transaction->timestamp() < reader.timestamp;
    switch (status) {
      case TransactionStatus::kAborted:
        continue;
      case TransactionStatus::kActive:
      case TransactionStatus::kCommitting:
        if (earlier && DEUT_STEP("R2.record_conflict")) return {Visible::Kind::kConflict, version};
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
  DEUT_DCHECK(InOrder(*replacement, live));
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

bool InstallCopy(RecordEntry& entry, HeadWord::Value& seen, const RecordVersion* over, RecordVersion* copy,
                 ReclamationDomain& domain, const SpillWatch& spills) {
  DEUT_DCHECK(copy->of_dc() && Older(copy) == nullptr);  // S7: it becomes the whole chain
  DEUT_DCHECK(over == nullptr || IsCommitted(*over));
  seen = entry.word.Load();
  for (;;) {
    if (seen.dead()) return false;
    // After the word was loaded: a spill that cuts the chain from here on changes the word, so the compare-and-swap below fails.
    if (spills.Changed() && DEUT_STEP("S7.not_after_spill")) return false;
    if (LiveHead(seen.head) != over && DEUT_STEP("S7.empty_chain")) return false;
    DEUT_POINT("chain.copy.before_cas");
    if (DEUT_CAS_FAILS("chain.copy.cas")) {
      seen = entry.word.Load();
      continue;
    }
    const HeadWord::Value before = seen;
    if (!entry.word.CompareExchange(seen, {before.bits | HeadWord::kQueued, copy})) continue;
    seen = before;
    RetireUntil(before.head, nullptr, domain);
    return true;
  }
}

HeadWord::Value RemoveCopy(RecordEntry& entry, ReclamationDomain& domain) {
  HeadWord::Value seen = entry.word.Load();
  for (;;) {
    DEUT_DCHECK(seen.queued());  // only this thread clears it
    const bool copy = seen.head != nullptr && seen.head->of_dc();
    const HeadWord::Value before = seen;
    DEUT_POINT("chain.copy_out.before_cas");
    if (DEUT_CAS_FAILS("chain.copy_out.cas")) {
      seen = entry.word.Load();
      continue;
    }
    if (!entry.word.CompareExchange(seen, {before.bits & ~HeadWord::kQueued, copy ? nullptr : before.head})) continue;
    DEUT_DCHECK(!copy || Older(before.head) == nullptr);  // S7: else versions would stay behind, unlinked
    if (copy) RecordVersion::Retire(before.head, domain);
    return before;
  }
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

Unread CollectUnread(RecordEntry& entry, const Readers& readers, ReclamationDomain& domain) {
  Unread unread;
  RecordVersion* newer = nullptr;            // the next committed version above that stays
  const TransactionRecord* above = nullptr;  // transaction of the next committed version above
  for (RecordVersion* version = entry.word.Load().head; version != nullptr;) {
    DEUT_POINT("collector.chain_step");
    RecordVersion* const older = Older(version);
    DEUT_DCHECK(InOrder(*version, older));
    const TransactionRecord* const transaction = version->transaction;
    const bool committed = IsCommitted(*version);
    // R4: an installer links to a live version, or to its own. Below a committed one there are only committed ones.
    DEUT_DCHECK(newer == nullptr || committed);
    if (newer == nullptr) {
      // Above the newest committed version there are only dead versions, and those of one open transaction.
      if (committed) newer = version;
    } else {
      const bool replaced = transaction == above;  // a later version of its own transaction stands above
      const bool read =
          DEUT_STEP("S6.unread") && readers.AnyIn(transaction->timestamp(), newer->transaction->timestamp());
      if ((replaced || !read) && transaction->collected()) {
        DEUT_POINT("chain.unread.before_unlink");
        // A reader that stands on `version` follows its `older`, which is unchanged. An installer never links below the newest committed version.
        newer->older.store(older, std::memory_order_seq_cst);
        ++unread.versions;
        if (!replaced && !version->applied) unread.bytes += PinnedBy(entry, *version);
        RecordVersion::Retire(version, domain);
      } else {
        newer = version;
      }
    }
    if (committed) above = transaction;
    version = older;
  }
  return unread;
}

void CollectApplied(RecordEntry& entry, RecordVersion* version, ReclamationDomain& domain) {
  DEUT_DCHECK(IsCommitted(*version));
  RetireUntil(version->older.exchange(nullptr, std::memory_order_seq_cst), nullptr, domain);
  version->applied = true;
  RemoveDeadAndApplied(entry, domain);
}

}  // namespace deut::tc
