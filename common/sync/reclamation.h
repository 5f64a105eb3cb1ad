// ReclamationDomain: epoch-based reclamation of memory, decentralised. A thread that unlinks an object from a
// latch-free structure retires it here. The domain frees it when every thread that might still hold a pointer to it
// has left its guard.
// (The idea: Fraser, "Practical lock-freedom", 2004; decentralised for Bw-trees by Wang et al., SIGMOD 2018.
// None of the given libraries, Abseil, protobuf and gRPC, reclaims memory in such a way.)
//
// States. A global epoch E starts at 1 and is only ever raised, by read-modify-write. Each registered thread owns a
//   slot: 0 = outside a guard, else an epoch not later than E. Retired objects lie in batches: open (its thread
//   appends), sealed with an epoch, freed. A slot's garbage is its open batch and its sealed batches in epoch order.
//   The thread that exchanged the garbage out of the slot owns it.
// Steps. (sc = sequentially consistent)
//   Enter   slot = E (sc store); then load E again (sc load), and if it moved, slot = the second value. Wait-free.
//   Leave   slot = 0 (release).
//   Retire  append to the open batch. When it is full, seal: batch.epoch = E++ (sc read-modify-write).
//   Free    after the seal, load every slot (sc); a batch is freed when its epoch is below every occupied slot.
// Why it is safe. Let r be the epoch of a batch, sealed by E: r -> r+1, after its objects were unlinked.
//   - A reader whose slot is > r has seen E > r. By the release sequence of E it sees the unlinking, so it finds no
//     such object.
//   - A reader whose second load of E saw <= r came before the seal in the total order of sc operations. So its slot
//     store comes before the freeing thread's slot loads. Those see its slot (<= r, so nothing is freed) or a later
//     value of it, which the reader wrote (release) after its last access.
// Winner and loser. When a thread finds its garbage missing, a collector holds it. The thread starts new garbage and
//   waits for nobody. A collector never gives garbage back to a slot. It moves the batches that it could not free to
//   the domain's list of leftovers (push: CAS; take: all).
// Guards nest (only the outermost enters). A guard is held over a few memory accesses, never across a wait, a message
// or a batch.
// Deleters run outside guards of the freeing thread (unless Collect is called inside one); they may retire more
// objects.
// Thread-safety: all methods from any thread. A thread is registered at its first guard and unregistered when it
//   ends; its garbage stays with the domain. Destructors of thread-local objects take no guard.
// Ownership: the domain owns retired objects. Its destructor frees all that are left and requires that no guard is
//   held. A domain may end before or after threads that used it.
// Limits: `pending_bytes` counts the retired bytes that are not freed yet. A thread that stays inside a guard makes
//   it grow, but blocks nobody. A thread holds back at most one open batch (kBatchObjects objects or kBatchBytes
//   bytes) until it retires more or Collect runs.
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

  // Frees `object` by `deleter(object)` once no guard can see it. `bytes` is the object's share of pending_bytes.
  // REQUIRES: the caller holds a guard; `object` is unlinked and this thread is the one that unlinked it.
  void Retire(void* object, void (*deleter)(void*), size_t bytes);

  template <typename T>
  void RetireObject(T* object, size_t bytes = sizeof(T)) {
    Retire(object, [](void* p) { delete static_cast<T*>(p); }, bytes);
  }

  // Frees every object that may be freed now, from the garbage of all threads that can be taken without waiting. For idle moments
  // and tests.
  void Collect();

  size_t pending_bytes() const;
  // True if the calling thread holds a guard. Code that requires or forbids a guard checks it.
  bool guard_held() const;

 private:
  friend struct ReclamationThread;

  Slot* Enter();
  void Leave(Slot* slot);
  void CollectOwn(Slot* slot);
  void Sweep(bool include_live_threads);

  const uint64_t id_;  // never reused in this process
  // The threads registered here share the core, so that the domain may end before a thread or after it.
  const std::shared_ptr<Core> core_;
};

}  // namespace deut

#endif  // COMMON_SYNC_RECLAMATION_H_
