#include "common/sync/reclamation.h"

#include <atomic>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut {
namespace {

// A thread sweeps the garbage of ended threads and the leftovers of collectors once per this number of seals.
constexpr uint32_t kSealsPerSweep = 16;
constexpr int kMaxSpareBatches = 4;
// Two cache lines, because the adjacent-line prefetcher fetches pairs.
constexpr size_t kSlotAlignment = 128;

struct Retired {
  void* object;
  void (*deleter)(void*);
  size_t bytes;
};

struct Batch {
  Batch* next = nullptr;
  uint64_t epoch = 0;  // set when sealed
  size_t bytes = 0;
  size_t count = 0;
  Retired entries[ReclamationDomain::kBatchObjects];
};

// Sealed batches in ascending epoch order.
struct BatchList {
  Batch* oldest = nullptr;
  Batch* newest = nullptr;

  bool empty() const { return oldest == nullptr; }
  void Append(Batch* batch) {
    batch->next = nullptr;
    (empty() ? oldest : newest->next) = batch;
    newest = batch;
  }
  Batch* TakeOldest() {
    Batch* batch = oldest;
    oldest = batch->next;
    if (oldest == nullptr) newest = nullptr;
    return batch;
  }
  void AppendList(BatchList later) {
    if (later.empty()) return;
    (empty() ? oldest : newest->next) = later.oldest;
    newest = later.newest;
  }
};

// The content of one slot, or one element of the leftovers. The thread that exchanged it out owns it.
struct Garbage {
  Garbage* next = nullptr;  // link in the list of leftovers
  Batch* open = nullptr;
  BatchList sealed;
  Batch* spare = nullptr;
  int spares = 0;

  Garbage() = default;
  Garbage(const Garbage&) = delete;
  Garbage& operator=(const Garbage&) = delete;
  // REQUIRES: the garbage holds no retired object.
  ~Garbage() {
    delete open;
    while (spare != nullptr) delete std::exchange(spare, spare->next);
  }

  Batch* NewOpen() {
    if (spare == nullptr) return new Batch;
    --spares;
    Batch* batch = std::exchange(spare, spare->next);
    batch->count = batch->bytes = 0;
    return batch;
  }
};

// Interleaves two ascending lists. Takes constant time when one lies wholly before the other, which is the usual
// case.
BatchList Merge(BatchList a, BatchList b) {
  BatchList merged;
  while (!a.empty() && !b.empty()) {
    if (a.newest->epoch <= b.oldest->epoch) {
      merged.AppendList(a);
      a = {};
    } else if (b.newest->epoch <= a.oldest->epoch) {
      merged.AppendList(b);
      b = {};
    } else {
      merged.Append(a.oldest->epoch <= b.oldest->epoch ? a.TakeOldest() : b.TakeOldest());
    }
  }
  merged.AppendList(a);
  merged.AppendList(b);
  return merged;
}

BatchList TakeBefore(BatchList* sealed, uint64_t epoch) {
  BatchList taken;
  const auto freeable = [&] {
    return sealed->oldest->epoch < epoch || (DEUT_OMITTED("reclamation.epoch") && sealed->oldest->epoch == epoch);
  };
  while (!sealed->empty() && freeable()) taken.Append(sealed->TakeOldest());
  return taken;
}

}  // namespace

struct alignas(kSlotAlignment) ReclamationDomain::Slot {
  // Written by the owning thread, read by every thread that frees.
  std::atomic<uint64_t> epoch{0};
  // Only the thread that owns the slot uses these; `owned` hands them from one owner to the next.
  uint32_t depth = 0;
  uint32_t seals = 0;
  bool collect_wanted = false;
  bool collecting = false;
  // Bytes ever retired through this slot, by all its owners.
  std::atomic<uint64_t> retired_bytes{0};
  // Only the owner stores a non-null pointer; any thread may exchange it out.
  std::atomic<Garbage*> garbage{nullptr};
  std::atomic<bool> owned{true};
  Slot* next = nullptr;  // constant once published
};

struct ReclamationDomain::Core {
  alignas(kSlotAlignment) std::atomic<uint64_t> epoch{1};
  alignas(kSlotAlignment) std::atomic<Slot*> slots{nullptr};
  std::atomic<Garbage*> leftovers{nullptr};
  std::atomic<uint64_t> freed_bytes{0};
  std::atomic<bool> ended{false};

  ~Core() {
    for (Slot* slot = slots.load(std::memory_order_acquire); slot != nullptr;) delete std::exchange(slot, slot->next);
  }

  uint64_t OldestOccupied() const {
    uint64_t oldest = UINT64_MAX;
    for (const Slot* slot = slots.load(std::memory_order_seq_cst); slot != nullptr; slot = slot->next) {
      const uint64_t entered = slot->epoch.load(std::memory_order_seq_cst);
      if (entered != 0 && entered < oldest) oldest = entered;
    }
    return oldest;
  }

  void SealOpen(Garbage* garbage) {
    Batch* batch = std::exchange(garbage->open, nullptr);
    DEUT_POINT("reclamation.before_seal");
    batch->epoch = epoch.fetch_add(1, std::memory_order_seq_cst);
    garbage->sealed.Append(batch);
  }

  void PushLeftovers(Garbage* garbage) {
    garbage->next = leftovers.load(std::memory_order_relaxed);
    do {
      DEUT_POINT("reclamation.leftovers.before_cas");
    } while (DEUT_CAS_FAILS("reclamation.leftovers.cas") ||
             !leftovers.compare_exchange_weak(garbage->next, garbage, std::memory_order_acq_rel));
  }

  // Runs the deleters. The emptied batches come back in a list linked by `next`.
  Batch* Free(BatchList batches) {
    for (Batch* batch = batches.oldest; batch != nullptr; batch = batch->next) {
      for (size_t i = 0; i < batch->count; ++i) batch->entries[i].deleter(batch->entries[i].object);
      freed_bytes.fetch_add(batch->bytes, std::memory_order_acq_rel);
    }
    return batches.oldest;
  }

  // Returns the slot of an ended thread, or a new one. The caller owns it now.
  Slot* AcquireSlot() {
    for (Slot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
      bool owned = slot->owned.load(std::memory_order_relaxed);
      if (!owned && !DEUT_CAS_FAILS("reclamation.acquire.cas") &&
          slot->owned.compare_exchange_strong(owned, true, std::memory_order_acq_rel)) {
        return slot;
      }
    }
    auto* slot = new Slot;
    slot->next = slots.load(std::memory_order_relaxed);
    do {
      DEUT_POINT("reclamation.register.before_cas");
    } while (DEUT_CAS_FAILS("reclamation.register.cas") ||
             !slots.compare_exchange_weak(slot->next, slot, std::memory_order_seq_cst));
    return slot;
  }
};

// The calling thread's slots, one for each domain it has used, behind a small direct-mapped cache.
struct ReclamationThread {
  using Slot = ReclamationDomain::Slot;
  using Core = ReclamationDomain::Core;
  struct Entry {
    uint64_t id;
    std::shared_ptr<Core> core;
    Slot* slot;
  };
  struct Cached {
    uint64_t id;
    Slot* slot;
  };
  static constexpr size_t kCached = 8;

  std::vector<Entry> entries;

  ~ReclamationThread() {
    ended = true;
    for (Cached& cached : cache) cached = {0, nullptr};
    for (const Entry& entry : entries) {
      DEUT_CHECK(entry.slot->depth == 0);
      entry.slot->owned.store(false, std::memory_order_release);
    }
  }

  // Returns null if this thread never entered the domain.
  static Slot* Find(uint64_t id) {
    Cached& cached = cache[id % kCached];
    if (cached.id == id) [[likely]]
      return cached.slot;
    if (ended) return nullptr;
    for (const Entry& entry : thread.entries) {
      if (entry.id == id) {
        cached = {id, entry.slot};
        return entry.slot;
      }
    }
    return nullptr;
  }

  static Slot* Register(uint64_t id, const std::shared_ptr<Core>& core) {
    DEUT_CHECK(!ended);
    std::erase_if(thread.entries, [](const Entry& entry) { return entry.core->ended.load(std::memory_order_acquire); });
    Slot* slot = core->AcquireSlot();
    thread.entries.push_back({id, core, slot});
    cache[id % kCached] = {id, slot};
    return slot;
  }

  static constinit thread_local bool ended;
  static constinit thread_local Cached cache[kCached];
  static thread_local ReclamationThread thread;
};

constinit thread_local bool ReclamationThread::ended = false;
constinit thread_local ReclamationThread::Cached ReclamationThread::cache[kCached] = {};
thread_local ReclamationThread ReclamationThread::thread;

namespace {

uint64_t NextDomainId() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

ReclamationDomain::ReclamationDomain() : id_(NextDomainId()), core_(std::make_shared<Core>()) {}

ReclamationDomain::~ReclamationDomain() {
  for (bool found = true; found;) {  // again while deleters retire more objects
    found = false;
    const auto drain = [&](Garbage* garbage) {
      found = true;
      if (garbage->open != nullptr) core_->SealOpen(garbage);
      for (Batch* batch = core_->Free(std::exchange(garbage->sealed, {})); batch != nullptr;) {
        delete std::exchange(batch, batch->next);
      }
      delete garbage;
    };
    for (Slot* slot = core_->slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
      DEUT_CHECK(slot->epoch.load(std::memory_order_acquire) == 0);
      if (Garbage* garbage = slot->garbage.exchange(nullptr, std::memory_order_acq_rel)) drain(garbage);
    }
    for (Garbage* garbage = core_->leftovers.exchange(nullptr, std::memory_order_acq_rel); garbage != nullptr;) {
      drain(std::exchange(garbage, garbage->next));
    }
  }
  core_->ended.store(true, std::memory_order_release);
}

ReclamationDomain::Slot* ReclamationDomain::Enter() {
  Slot* slot = ReclamationThread::Find(id_);
  if (slot == nullptr) [[unlikely]]
    slot = ReclamationThread::Register(id_, core_);
  if (slot->depth++ != 0) return slot;
  const uint64_t seen = core_->epoch.load(std::memory_order_acquire);
  DEUT_POINT("reclamation.enter.before_store");
  slot->epoch.store(seen, std::memory_order_seq_cst);
  // The second load decides the race with a seal between load and store: see "Why it is safe" in the header.
  DEUT_POINT("reclamation.enter.before_second_look");
  const uint64_t now = core_->epoch.load(std::memory_order_seq_cst);
  if (DEUT_OMITTED("reclamation.enter")) slot->epoch.store(0, std::memory_order_release);
  if (now != seen && DEUT_STEP("reclamation.enter")) slot->epoch.store(now, std::memory_order_release);
  return slot;
}

void ReclamationDomain::Leave(Slot* slot) {
  if (--slot->depth != 0) return;
  slot->epoch.store(0, std::memory_order_release);
  if (slot->collect_wanted && !slot->collecting) [[unlikely]]
    CollectOwn(slot);
}

void ReclamationDomain::Retire(void* object, void (*deleter)(void*), size_t bytes) {
  Slot* slot = ReclamationThread::Find(id_);
  DEUT_CHECK(slot != nullptr && slot->depth != 0);
  // Takes the garbage out of the slot, so that a concurrent collector cannot touch it meanwhile. The loser finds null
  // and starts new garbage.
  Garbage* garbage = slot->garbage.exchange(nullptr, std::memory_order_acq_rel);
  DEUT_POINT("reclamation.retire.garbage_out");
  if (garbage == nullptr) [[unlikely]]
    garbage = new Garbage;
  if (garbage->open == nullptr) garbage->open = garbage->NewOpen();
  Batch* batch = garbage->open;
  batch->entries[batch->count++] = {object, deleter, bytes};
  batch->bytes += bytes;
  slot->retired_bytes.store(slot->retired_bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  if (batch->count == kBatchObjects || batch->bytes >= kBatchBytes) {
    core_->SealOpen(garbage);
    ++slot->seals;
    slot->collect_wanted = true;
  }
  slot->garbage.store(garbage, std::memory_order_release);
}

void ReclamationDomain::CollectOwn(Slot* slot) {
  slot->collect_wanted = false;
  slot->collecting = true;
  const uint64_t oldest = core_->OldestOccupied();
  if (Garbage* garbage = slot->garbage.exchange(nullptr, std::memory_order_acq_rel)) {
    const BatchList freeable = TakeBefore(&garbage->sealed, oldest);
    slot->garbage.store(garbage, std::memory_order_release);  // before the deleters, which may retire more objects
    Batch* emptied = core_->Free(freeable);
    garbage = slot->garbage.exchange(nullptr, std::memory_order_acq_rel);
    while (emptied != nullptr) {
      Batch* batch = std::exchange(emptied, emptied->next);
      if (garbage == nullptr || garbage->spares == kMaxSpareBatches) {
        delete batch;
      } else {
        batch->next = std::exchange(garbage->spare, batch);
        ++garbage->spares;
      }
    }
    if (garbage != nullptr) slot->garbage.store(garbage, std::memory_order_release);
  }
  if (slot->seals >= kSealsPerSweep) {
    slot->seals = 0;
    Sweep(/*include_live_threads=*/false);
  }
  slot->collecting = false;
}

void ReclamationDomain::Sweep(bool include_live_threads) {
  std::unique_ptr<Garbage> taken;
  const auto take = [&](Garbage* garbage) {
    if (garbage->open != nullptr) core_->SealOpen(garbage);
    if (taken == nullptr) {
      taken.reset(garbage);
    } else {
      taken->sealed = Merge(taken->sealed, garbage->sealed);
      delete garbage;
    }
  };
  for (Slot* slot = core_->slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    if (!include_live_threads && slot->owned.load(std::memory_order_relaxed)) continue;
    if (slot->garbage.load(std::memory_order_relaxed) == nullptr) continue;
    if (Garbage* garbage = slot->garbage.exchange(nullptr, std::memory_order_acq_rel)) take(garbage);
  }
  for (Garbage* garbage = core_->leftovers.exchange(nullptr, std::memory_order_acq_rel); garbage != nullptr;) {
    take(std::exchange(garbage, garbage->next));
  }
  if (taken == nullptr) return;
  DEUT_POINT("reclamation.sweep.taken");
  const BatchList freeable = TakeBefore(&taken->sealed, core_->OldestOccupied());
  if (!taken->sealed.empty()) core_->PushLeftovers(taken.release());
  for (Batch* batch = core_->Free(freeable); batch != nullptr;) delete std::exchange(batch, batch->next);
}

void ReclamationDomain::Collect() { Sweep(/*include_live_threads=*/true); }

size_t ReclamationDomain::pending_bytes() const {
  // Loads the freed bytes first: every byte counted in them was counted as retired before.
  const uint64_t freed = core_->freed_bytes.load(std::memory_order_acquire);
  uint64_t retired = 0;
  for (const Slot* slot = core_->slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    retired += slot->retired_bytes.load(std::memory_order_relaxed);
  }
  return retired - freed;
}

bool ReclamationDomain::guard_held() const {
  const Slot* slot = ReclamationThread::Find(id_);
  return slot != nullptr && slot->depth != 0;
}

}  // namespace deut
