#include "tc/outcomes/outcome_table.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/base/check.h"
#include "common/sync/block_pool.h"
#include "common/sync/raise_to.h"
#include "common/testing/test_points.h"

namespace deut::tc {

// `references`: 1 for the slot, 1 for each thread that uses the entry outside a guard. The thread that drops the last one retires it.
class OutcomeTable::Entry : public PoolAllocated {
 public:
  enum State : uint32_t { kCommitting, kAwaited, kCommitted, kDropped, kFence, kAnswered, kVoid };

  Entry(const Hashed& own, uint64_t own_timestamp, State first, MonotonicTime now)
      : id(own.id), hash(own.hash), timestamp(own_timestamp), at(now), state(first) {}

  bool is_fence() const {
    const uint32_t now = state.load(std::memory_order_seq_cst);
    return now == kFence || now == kAnswered;
  }
  bool is_commit() const {
    const uint32_t now = state.load(std::memory_order_seq_cst);
    return now == kCommitting || now == kAwaited || now == kCommitted;
  }
  // REQUIRES: a guard has been held since the entry was found. False: the last reference has been dropped.
  bool TryReference() {
    uint32_t count = references.load(std::memory_order_relaxed);
    while (count != 0) {
      if (references.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  const TransactionId id;
  const uint64_t hash;
  const uint64_t timestamp;  // of the transaction; of a fence: the next timestamp when the client asked
  const MonotonicTime at;
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> references{1};
  std::atomic<uint64_t> commit_lsn{0};
};

OutcomeTable::OutcomeTable(const OutcomeTableOptions& options, Runtime& runtime, ReclamationDomain& domain)
    : window_(options.window),
      runtime_(runtime),
      domain_(domain),
      key_{.low = runtime.RandomSeed(), .high = runtime.RandomSeed()},
      mask_(std::bit_floor(std::max<size_t>(1, options.max_outcomes / Bucket::kSlots)) - 1),
      first_timestamp_(DEUT_OMITTED("outcome.lives") ? 0 : options.first_timestamp.value),
      memory_(std::calloc(mask_ + 2, sizeof(Bucket)), [](void* memory) { std::free(memory); }),
      buckets_(FirstBucketIn(memory_.get())) {}

OutcomeTable::Bucket* OutcomeTable::FirstBucketIn(void* memory) {
  // Zeros are an empty bucket, and need no destructor.
  static_assert(std::is_trivially_destructible_v<Bucket>);
  DEUT_CHECK(memory != nullptr);
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<Bucket*>((address + alignof(Bucket) - 1) / alignof(Bucket) * alignof(Bucket));
}

OutcomeTable::~OutcomeTable() {
  for (size_t i = 0; i <= mask_; ++i) {
    for (std::atomic<uint64_t>& slot : buckets_[i].slots) delete EntryOf(slot.load(std::memory_order_relaxed));
  }
}

OutcomeTable::Hashed OutcomeTable::Hash(const TransactionId& id) const {
  const uint64_t words[] = {id.high, id.low};
  return {.id = id, .hash = SipHash(key_, std::string_view(reinterpret_cast<const char*>(words), sizeof(words)))};
}

uint64_t OutcomeTable::WordOf(const Entry* entry) {
  if (entry == nullptr) return 0;
  const auto address = reinterpret_cast<uintptr_t>(entry);
  DEUT_DCHECK(address >> kTagShift == 0);
  return address | (TagOf(entry->hash) << kTagShift);
}

void OutcomeTable::DropReference(Entry* entry) {
  const uint32_t before = entry->references.fetch_sub(1, std::memory_order_acq_rel);
  DEUT_DCHECK(before != 0);  // or the entry was retired before
  if (before == 1) domain_.RetireObject(entry, kEntryBytes);
}

void OutcomeTable::EvictSlot(Bucket& bucket, std::atomic<uint64_t>& slot, uint64_t seen, Entry* replacement,
                             bool* done) {
  Entry* const old = EntryOf(seen);
  // Raised before the entry is evicted: an asker reads the slots first and the horizon second, so it sees the entry or the raised horizon.
  if (old != nullptr && DEUT_STEP("outcome.raise_horizon")) {
    if (old->is_commit()) RaiseTo(bucket.horizon, old->timestamp + 1);
    if (old->is_fence()) RaiseTo(bucket.fence_horizon, old->timestamp + 1);
  }
  DEUT_POINT("outcome.put_out");
  *done = !DEUT_CAS_FAILS("outcome.put_out.cas") &&
          slot.compare_exchange_strong(seen, WordOf(replacement), std::memory_order_seq_cst);
  if (!*done) return;
  // The entry is gone. An asker, or a committer, that does not find it finds it below the horizon.
  DEUT_DCHECK(old == nullptr || !old->is_commit() || bucket.horizon.load(std::memory_order_seq_cst) > old->timestamp);
  DEUT_DCHECK(old == nullptr || !old->is_fence() ||
              bucket.fence_horizon.load(std::memory_order_seq_cst) > old->timestamp);
  if (old != nullptr) DropReference(old);
  if (old == nullptr && replacement != nullptr) entries_.fetch_add(1, std::memory_order_relaxed);
  if (old != nullptr && replacement == nullptr) entries_.fetch_sub(1, std::memory_order_relaxed);
}

void OutcomeTable::Publish(Bucket& bucket, Entry* entry) {
  std::atomic<uint64_t>& slot = bucket.slots[bucket.next.fetch_add(1, std::memory_order_relaxed) % Bucket::kSlots];
  for (bool done = false; !done;) EvictSlot(bucket, slot, slot.load(std::memory_order_seq_cst), entry, &done);
}

OutcomeTable::Entry* OutcomeTable::Find(Bucket& bucket, const Hashed& id, bool (Entry::*is)() const,
                                        const Entry* except) {
  const uint64_t tag = TagOf(id.hash);
  for (std::atomic<uint64_t>& slot : bucket.slots) {
    const uint64_t word = slot.load(std::memory_order_seq_cst);
    if (word == 0 || word >> kTagShift != tag) continue;
    Entry* const entry = EntryOf(word);
    if (entry != except && entry->id == id.id && (entry->*is)()) return entry;
  }
  return nullptr;
}

void OutcomeTable::Recover(const RecoveredLog& recovered) {
  DEUT_CHECK(entries_.load(std::memory_order_relaxed) == 0);  // a later commit would look older than a recovered one
  // Without a horizon no bucket is touched, so none takes memory.
  for (size_t i = 0; recovered.outcome_horizon.value != 0 && i <= mask_; ++i) {
    buckets_[i].horizon.store(recovered.outcome_horizon.value, std::memory_order_relaxed);
  }
  const MonotonicTime now = runtime_.Now();
  for (const CommitOutcome& outcome : recovered.outcomes) {
    const ReclamationDomain::Guard guard(domain_);
    const Hashed id = Hash(outcome.id);
    auto* const entry = new Entry(id, outcome.timestamp.value, Entry::kCommitted, now);
    entry->commit_lsn.store(outcome.commit_lsn.value, std::memory_order_relaxed);
    Publish(BucketOf(id), entry);
  }
}

Result<OutcomeTable::Entry*> OutcomeTable::BeginCommit(const TransactionName& name, Timestamp timestamp) {
  if (name.not_before > timestamp) {
    return DEUT_ERROR(kInvalidArgument, "the transaction's name says that it begins at ", name.not_before.value,
                      " or later, and it began at ", timestamp.value);
  }
  const Hashed id = Hash(name.id);
  Bucket& bucket = BucketOf(id);
  auto* const entry = new Entry(id, timestamp.value, Entry::kCommitting, runtime_.Now());
  entry->references.store(2, std::memory_order_relaxed);
  Status lost;
  {
    const ReclamationDomain::Guard guard(domain_);
    Publish(bucket, entry);
    // Published before the look for a fence. An asker publishes its fence before its last look for a commit, so at least one sees the other.
    DEUT_POINT("outcome.published");
    if (Find(bucket, id, &Entry::is_commit, entry) != nullptr) {
      lost = DEUT_ERROR(kInvalidArgument, "the transaction's id has been used before: each transaction needs its own");
    } else if ((Find(bucket, id, &Entry::is_fence) != nullptr || FenceHorizon(bucket) > name.not_before.value) &&
               DEUT_STEP("outcome.check_fence")) {
      lost = Status::Aborted(
          AbortInfo{.reason = AbortReason::kRequested},
          "the transaction's outcome has been asked for, or may have been, before it was committed: it is none");
    }
  }
  if (lost.ok()) return entry;
  Drop(entry);
  return lost;
}

void OutcomeTable::SetFinal(Entry* entry, uint32_t state) {
  const uint32_t before = entry->state.exchange(state, std::memory_order_seq_cst);
  DEUT_DCHECK(before == Entry::kCommitting || before == Entry::kAwaited);  // a commit is decided once
  if (before == Entry::kAwaited) runtime_.WakeAll(entry->state);
  const ReclamationDomain::Guard guard(domain_);
  DropReference(entry);
}

void OutcomeTable::Finish(Entry* entry, Lsn commit_lsn) {
  DEUT_DCHECK(commit_lsn > Lsn{0});
  entry->commit_lsn.store(commit_lsn.value, std::memory_order_relaxed);
  SetFinal(entry, Entry::kCommitted);
}

void OutcomeTable::Drop(Entry* entry) { SetFinal(entry, Entry::kDropped); }

Result<bool> OutcomeTable::AwaitCommit(Entry* entry, Deadline deadline, OutcomeAnswer* answer) {
  uint32_t state = entry->state.load(std::memory_order_seq_cst);
  bool in_time = true;
  while ((state == Entry::kCommitting || state == Entry::kAwaited) && in_time) {
    if (state == Entry::kCommitting &&
        !entry->state.compare_exchange_strong(state, Entry::kAwaited, std::memory_order_seq_cst)) {
      continue;
    }
    in_time = runtime_.Now() < deadline;
    if (in_time) (void)runtime_.Wait(entry->state, Entry::kAwaited, deadline);
    state = entry->state.load(std::memory_order_seq_cst);
  }
  const bool committed = state == Entry::kCommitted;
  if (committed) {
    // Finish stores the LSN before the state, so a thread that sees the state sees the LSN.
    DEUT_DCHECK(entry->commit_lsn.load(std::memory_order_relaxed) != 0);
    *answer = {.outcome = TransactionOutcome::kCommitted,
               .commit = {.timestamp = Timestamp(entry->timestamp),
                          .commit_lsn = Lsn(entry->commit_lsn.load(std::memory_order_relaxed))}};
  }
  const ReclamationDomain::Guard guard(domain_);
  DropReference(entry);
  if (!committed && state != Entry::kDropped)
    return DEUT_ERROR(kDeadlineExceeded, "the transaction is being committed");
  return committed;
}

Result<OutcomeAnswer> OutcomeTable::Ask(const TransactionName& name, Timestamp next, Deadline deadline) {
  if (!name.id.given()) return DEUT_ERROR(kInvalidArgument, "id: a transaction without an id cannot be asked for");
  if (name.not_before > next) {
    return DEUT_ERROR(kInvalidArgument, "not_before: no transaction has begun at ", name.not_before.value, " yet");
  }
  asked_.fetch_add(1, std::memory_order_relaxed);
  const Hashed id = Hash(name.id);
  Bucket& bucket = BucketOf(id);
  OutcomeAnswer answer;
  Entry* fence = nullptr;  // this call holds a reference
  Status failed;
  for (bool looked_again = false;;) {
    Entry* commit = nullptr;
    {
      const ReclamationDomain::Guard guard(domain_);
      commit = Find(bucket, id, &Entry::is_commit);
      if (commit != nullptr && !commit->TryReference()) continue;
      if (commit == nullptr) {
        if (looked_again) break;
        fence = Find(bucket, id, &Entry::is_fence);
        if (fence != nullptr && !fence->TryReference()) fence = nullptr;
        if (fence == nullptr) {
          if (bucket.horizon.load(std::memory_order_seq_cst) > name.not_before.value) return answer;  // too old
          fence = new Entry(id, next.value, Entry::kFence, runtime_.Now());
          fence->references.store(2, std::memory_order_relaxed);
          DEUT_POINT("outcome.before_fence");
          Publish(bucket, fence);
        }
        looked_again = true;
        if (DEUT_OMITTED("outcome.look_again")) break;
        continue;
      }
    }
    DEUT_POINT("outcome.commit_found");
    const Result<bool> committed = AwaitCommit(commit, deadline, &answer);
    if (committed.ok() && !*committed) continue;  // dropped: the entry counts as absent from now on
    if (!committed.ok()) failed = committed.status();
    break;
  }
  const ReclamationDomain::Guard guard(domain_);
  if (fence != nullptr) {
    uint32_t state = fence->state.load(std::memory_order_seq_cst);
    if (answer.outcome == TransactionOutcome::kCommitted) {
      fence->state.store(Entry::kVoid, std::memory_order_seq_cst);
    } else if (failed.ok()) {
      const bool known =
          state == Entry::kAnswered || bucket.horizon.load(std::memory_order_seq_cst) <= name.not_before.value;
      answer.outcome = known ? TransactionOutcome::kNotCommitted : TransactionOutcome::kTooOld;
      // Only a fence becomes an answer. A void entry may have been evicted without raising the fence horizon.
      if (known && state == Entry::kFence &&
          fence->state.compare_exchange_strong(state, Entry::kAnswered, std::memory_order_seq_cst)) {
        fenced_.fetch_add(1, std::memory_order_relaxed);
      }
    }
    DropReference(fence);
  }
  if (!failed.ok()) return failed;
  return answer;
}

Timestamp OutcomeTable::ForgetBelow(Lsn cut) {
  const MonotonicTime now = runtime_.Now();
  uint64_t horizon = 0;
  for (size_t i = 0; i <= mask_; ++i) {
    Bucket& bucket = buckets_[i];
    const ReclamationDomain::Guard guard(domain_);
    for (std::atomic<uint64_t>& slot : bucket.slots) {
      const uint64_t word = slot.load(std::memory_order_seq_cst);
      if (word == 0) continue;
      const Entry* const entry = EntryOf(word);
      // A commit that is not finished has its record above the redo start (S2).
      const bool commit = entry->state.load(std::memory_order_seq_cst) == Entry::kCommitted;
      bool gone;
      if (commit ? entry->commit_lsn.load(std::memory_order_relaxed) < cut.value
                 : !entry->is_commit() && now - entry->at > window_) {
        EvictSlot(bucket, slot, word, nullptr, &gone);
      }
    }
    // After the slots: an entry that was evicted meanwhile has raised the horizon before.
    horizon = std::max(horizon, bucket.horizon.load(std::memory_order_seq_cst));
  }
  return Timestamp(horizon);
}

}  // namespace deut::tc
