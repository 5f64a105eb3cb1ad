// RecordVersion: one version of a record in its chain, newest first.
//
// Two things decide a version: its transaction's status (R7) and `withdrawn`. The owner sets `withdrawn` once, when the precondition of an insert
//   or update turns out false (R11). Dead = aborted or withdrawn. The owner withdraws before its transaction commits, so a reader loads the
//   status first and `withdrawn` second. In the other order a version that is withdrawn in between would count as committed.
// S9: a committed version may be paged out: a version without the value, which names the update's place in the log, replaces it in the chain
//   (page_out.h). Only a logged update can be: not one that its own transaction has replaced (S10), nor a withdrawn one.
// Invariant (R4): the live versions of a chain are in strictly descending (timestamp, sequence). Dead versions stand only above all live ones,
//   because an installer links the new version to the newest live one.
// A copy of the DC's record (S7, read_cache.h) has sequence 0. Its transaction has timestamp 0 and has always been committed, so every reader
//   sees it. It is the whole chain: no version is linked below or above it.
// Thread-safety: any thread under a guard; a member with a narrower rule says so.
// Ownership: the chain owns it. The thread that unlinks it drops its transaction reference and retires it. Each version holds one reference.
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
  // S9: the paged-out replacement of `version`, which is logged.
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
  // Sets the value of an intent version (R11). Only the owner calls it, before it commits; no other thread reads the value until then.
  void Fill(std::string_view value) {
    DEUT_DCHECK(value.size() == value_bytes);
    std::memcpy(data(), value.data(), value.size());
  }
  Version version() const { return Version{transaction->timestamp(), sequence}; }
  bool dead() const {
    return (withdrawn.load(std::memory_order_seq_cst) && DEUT_STEP("R4.withdrawn")) ||
           transaction->status() == TransactionStatus::kAborted;
  }
  bool of_dc() const { return sequence == 0; }
  size_t bytes() const { return sizeof(RecordVersion) + (paged_out ? 0 : value_bytes); }
  // Stores the place of the update in the log. Only the owner calls it, once the commit is in the log buffer and before the status says so.
  void SetPlace(Lsn lsn) {
    std::construct_at(&place, lsn);
    logged = true;
  }

  TransactionRecord* const transaction;
  union {
    WriteItem* item = nullptr;  // in the owner's write set; only the owner uses it, until the commit is in the log
    Lsn place;                  // place of the update in the log, if `logged`
  };
  std::atomic<RecordVersion*> older{nullptr};
  const uint32_t sequence;
  const uint32_t value_bytes;
  const bool tombstone;
  const bool paged_out;
  bool logged = false;  // final before the status becomes committed
  std::atomic<bool> withdrawn{false};
  bool applied = false;                   // found applied at the DC; only the collector uses it
  bool spilled = false;                   // in a published spilled run (spiller.h); only the collector uses it
  mutable std::atomic<bool> used{false};  // of a copy: read since the collector last looked at it

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
