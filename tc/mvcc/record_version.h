// RecordVersion: one version of a record in its chain, newest first.
//
// A version is decided by its transaction's status alone (R7), and by `withdrawn`: set once, by its owner, when the precondition of an
// insert or update turns out false (R11). Dead = aborted or withdrawn. It is withdrawn before its transaction commits, so whoever decides
// looks at the status first, at `withdrawn` second: in the other order a version that is withdrawn in between counts as committed.
// S9: a committed version may be paged out: a version without the value, which says where in the log that is, takes its place in the chain
//   (page_out.h). Only what the log has can be: not what its own transaction has replaced (S10), nor what is withdrawn.
// Invariant (R4): the live versions of a chain are in strictly descending (timestamp, sequence); dead versions stand only above all
//   live ones, because whoever installs links the new version to the newest live one.
// A copy of what the DC has (S7, read_cache.h) has sequence 0 and belongs to a transaction of timestamp 0 that has always been committed, so
//   everybody sees it. It is a chain by itself: nothing is linked below or above it.
// Ownership: the chain owns it; whoever unlinks it drops its transaction reference and retires it. Each version holds one reference.
#ifndef TC_MVCC_RECORD_VERSION_H_
#define TC_MVCC_RECORD_VERSION_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "common/base/ids.h"
#include "common/sync/block_pool.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

struct RecordVersion {
  static RecordVersion* Create(TransactionRecord* transaction, uint32_t sequence, bool tombstone,
                               std::string_view value) {
    void* memory = BlockPool::Allocate(sizeof(RecordVersion) + value.size());
    auto* version = new (memory) RecordVersion(transaction, sequence, tombstone, static_cast<uint32_t>(value.size()));
    if (!value.empty()) std::memcpy(version->data(), value.data(), value.size());
    transaction->AddReference();
    return version;
  }
  // S9: what takes the place of `version`, which is logged, in its chain.
  static RecordVersion* CreatePagedOut(const RecordVersion& version) {
    auto* out = new (BlockPool::Allocate(sizeof(RecordVersion)))
        RecordVersion(version.transaction, version.sequence, false, version.value_bytes, /*is_paged_out=*/true);
    out->SetPlace(version.place);
    out->spilled = version.spilled;
    out->transaction->AddReference();
    return out;
  }
  // For a version that was never published.
  static void Destroy(RecordVersion* version, ReclamationDomain& domain) {
    version->transaction->DropReference(domain);
    Free(version);
  }
  // For a version that this thread has just unlinked. REQUIRES: a guard is held.
  static void Retire(RecordVersion* version, ReclamationDomain& domain) {
    version->transaction->DropReference(domain);
    const size_t bytes = version->bytes();
    domain.Retire(version, [](void* p) { Free(static_cast<RecordVersion*>(p)); }, bytes);
  }

  // REQUIRES: it is not paged out.
  std::string_view value() const {
    DEUT_DCHECK(!paged_out);
    return {reinterpret_cast<const char*>(this + 1), value_bytes};
  }
  // The value of an intent version (R11), by its owner, before it commits: nobody else looks at it until then.
  void Fill(std::string_view value) {
    DEUT_DCHECK(value.size() == value_bytes);
    std::memcpy(data(), value.data(), value.size());
  }
  Version version() const { return Version{transaction->timestamp(), sequence}; }
  bool dead() const {
    return (withdrawn.load(std::memory_order_seq_cst) && !DEUT_OMITTED("R4.withdrawn")) ||
           transaction->status() == TransactionStatus::kAborted;
  }
  bool of_dc() const { return sequence == 0; }
  size_t bytes() const { return sizeof(RecordVersion) + (paged_out ? 0 : value_bytes); }
  // The commit is in the log, and the update there. By the owner, before the status says so.
  void SetPlace(Lsn lsn) {
    std::construct_at(&place, lsn);
    logged = true;
  }

  TransactionRecord* const transaction;
  union {
    WriteItem* item = nullptr;  // of the owner's write set; the owner's alone, until the commit is in the log
    Lsn place;                  // of the update in the log, if `logged`
  };
  std::atomic<RecordVersion*> older{nullptr};
  const uint32_t sequence;
  const uint32_t value_bytes;
  const bool tombstone;
  const bool paged_out;
  bool logged = false;  // settled before the status is committed
  std::atomic<bool> withdrawn{false};
  bool applied = false;                   // at the DC; the collector's alone
  bool spilled = false;                   // in a published spilled run (spiller.h); the collector's alone
  mutable std::atomic<bool> used{false};  // of a copy: read since it was looked at last

 private:
  RecordVersion(TransactionRecord* t, uint32_t s, bool is_tombstone, uint32_t bytes, bool is_paged_out = false)
      : transaction(t), sequence(s), value_bytes(bytes), tombstone(is_tombstone), paged_out(is_paged_out) {}
  static void Free(RecordVersion* version) {
    const size_t bytes = version->bytes();
    version->~RecordVersion();
    BlockPool::Free(version, bytes);
  }
  char* data() { return reinterpret_cast<char*>(this + 1); }
};

}  // namespace deut::tc

#endif  // TC_MVCC_RECORD_VERSION_H_
