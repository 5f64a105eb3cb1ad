// ReclamationDomain: epoch-based reclamation of memory, decentralised. An object unlinked from a latch-free structure is
// retired here and freed when every thread that might still hold a pointer to it has left its guard.
// (The idea: Fraser, "Practical lock-freedom", 2004; decentralised for Bw-trees by Wang et al., SIGMOD 2018.)
//
// States. A global epoch E (from 1, only ever raised, by read-modify-write). Each registered thread owns a slot: 0 = outside
//   a guard, else an epoch not later than E. Retired objects lie in batches: open (its thread appends), sealed with an
//   epoch, freed. A slot's garbage (open batch and sealed ones in epoch order) is owned by whoever exchanged it out.
// Steps. (sc = sequentially consistent)
//   Enter   slot = E (sc store); then look at E again (sc load), and if it moved, slot = what was seen. Wait-free.
//   Leave   slot = 0 (release).
//   Retire  append to the open batch. When it is full, seal: batch.epoch = E++ (sc read-modify-write).
//   Free    after the seal, load every slot (sc); a batch is freed when its epoch is below every occupied slot.
// Why it is safe. Let r be the epoch of a batch, sealed by E: r -> r+1, after its objects were unlinked.
//   A reader whose slot is > r has seen E > r: by the release sequence of E it sees the unlinking, so it finds no such object.
//   A reader whose second look at E saw <= r came before the seal in the total order of sc operations, so its slot store
//   comes before the freeing thread's slot loads: those see its slot (<= r, so nothing is freed) or a later value of it,
//   which it wrote (release) after its last access.
// Winner and loser. Garbage that a thread finds missing is in the hands of a collector: it starts anew and waits for nobody.
//   A collector never gives back to a slot; what it could not free goes to the domain's list of leftovers (push: CAS; take: all).
// Guards nest (only the outermost enters). A guard is held over a few memory accesses, never across a wait, a message or a batch.
// Deleters run outside guards of the freeing thread (unless Collect is called inside one); they may retire more.
// Thread-safety: all methods from any thread; a thread is registered at its first guard and unregistered when it ends; its
//   garbage stays with the domain. No guard is taken by destructors of thread-local objects.
// Ownership: the domain owns retired objects; its destructor frees all that are left and requires that no guard is held. A
//   domain may end before or after threads that used it.
// Limits: `pending_bytes` is what waits to be freed; a thread that stays inside a guard makes it grow (and blocks nobody).
//   A thread holds back at most one open batch (kBatchObjects objects or kBatchBytes bytes) until it retires more or Collect.
#ifndef COMMON_SYNC_RECLAMATION_H_
#define COMMON_SYNC_RECLAMATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace deut {

class ReclamationDomain {
 public:
  static constexpr size_t kBatchObjects = 62;
  static constexpr size_t kBatchBytes = 64 << 10;

  ReclamationDomain();
  ~ReclamationDomain();
  ReclamationDomain(const ReclamationDomain&) = delete;
  ReclamationDomain& operator=(const ReclamationDomain&) = delete;

 private:
  struct Slot;
  struct Core;

 public:
  class Guard {
   public:
    explicit Guard(ReclamationDomain& domain) : domain_(domain), slot_(domain.Enter()) {}
    ~Guard() { domain_.Leave(slot_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    ReclamationDomain& domain_;
    Slot* const slot_;
  };

  // Frees `object` by `deleter(object)` once no guard can see it. `bytes` is what it counts for in pending_bytes.
  // REQUIRES: a guard is held; `object` is unlinked and this thread is the one that unlinked it.
  void Retire(void* object, void (*deleter)(void*), size_t bytes);

  template <typename T>
  void RetireObject(T* object, size_t bytes = sizeof(T)) {
    Retire(object, [](void* p) { delete static_cast<T*>(p); }, bytes);
  }

  // Frees what can be freed now, of all threads' garbage that can be had without waiting. For idle moments and tests.
  void Collect();

  size_t pending_bytes() const;
  // True if the calling thread holds a guard (checked by code that requires or forbids one).
  bool held() const;

 private:
  friend struct ReclamationThread;

  Slot* Enter();
  void Leave(Slot* slot);
  void CollectOwn(Slot* slot);
  void Sweep(bool of_living_threads);

  const uint64_t id_;  // never reused in this process
  // Shared with the threads registered here, so that either may end first.
  const std::shared_ptr<Core> core_;
};

}  // namespace deut

#endif  // COMMON_SYNC_RECLAMATION_H_
