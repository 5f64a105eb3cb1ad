// HandshakePace: holds accepted connections back before they are handed to gRPC, so that only a few handshakes are in flight at once.
//
// Why: gRPC does the private-key operations of all handshakes that have arrived inside one wait for events. Without a bound, one thread runs
//   thousands of them in a row, and a health check that arrives meanwhile waits for all of them.
// A slot is the right to have a handshake in flight. A connection gets its slot when it is handed over. It keeps the slot until its handshake is
//   done, the connection is gone, or the slot expires. At most kMaxHandshakesInFlight connections have a slot.
// How long a slot lasts depends on the side that waits:
//   - The peer waits for the server: that costs processor time, and the slot lasts for kSlotTimeWhileServerIsAwaited.
//   - The server waits for the peer: that costs nothing and must not hold back others. The slot expires kSlotTimeWhilePeerIsAwaited after that wait
//     began. The server waits for the peer at the beginning, unless the first message (a whole ClientHello) is there, and again from PeerIsAwaited
//     on.
// Order: first come, first served among the connections of one address; addresses alternate (PeerKey). So a flood from one address delays itself.
// States of a connection: waiting -> in flight (AwaitNext) -> passed (its slot is destroyed, or expires). waiting -> gone (Withdraw; Stop; or
//   AwaitNext, if the peer has closed the connection while it waited).
// Races. A slot may end after it has expired, and after the object is stopped. Each slot has a ticket that is never reused, so the second end
//   finds nothing. gRPC may keep slots for longer than the server lives, so slots share ownership of the object. A slot ends on a thread of gRPC,
//   within a callback of OpenSSL. There it only wakes the thread in AwaitNext: handing over at that point would enter gRPC from within its handshake.
// Thread-safety: all methods from any thread; AwaitNext from one. Ownership: owns the sockets that wait.
#ifndef PROTOCOL_CONNECTIONS_HANDSHAKE_PACE_H_
#define PROTOCOL_CONNECTIONS_HANDSHAKE_PACE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/descriptor.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/connections/peer_key.h"

namespace deut {

class HandshakePace : public std::enable_shared_from_this<HandshakePace> {
 public:
  static constexpr size_t kMaxHandshakesInFlight = 8;
  static constexpr Duration kSlotTimeWhilePeerIsAwaited = milliseconds(200);
  static constexpr Duration kSlotTimeWhileServerIsAwaited = seconds(5);

  // A connection's slot. The destructor ends it.
  class Slot {
   public:
    Slot(std::shared_ptr<HandshakePace> pace, uint64_t ticket) : pace_(std::move(pace)), ticket_(ticket) {}
    ~Slot() { pace_->End(ticket_); }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    // Tells that the server has written its part of the handshake and waits for the peer. Has no effect if the slot has ended.
    void PeerIsAwaited() { pace_->PeerIsAwaited(ticket_); }

   private:
    const std::shared_ptr<HandshakePace> pace_;
    const uint64_t ticket_;
  };

  struct Next {
    Descriptor socket;
    std::shared_ptr<Slot> slot;
  };

  // `runtime` outlives the object and its slots. `slot_time_for_peer` differs in tests only.
  static std::shared_ptr<HandshakePace> Create(Runtime& runtime,
                                               Duration slot_time_for_peer = kSlotTimeWhilePeerIsAwaited);

  // Adds a connection that waits. Withdraw knows it by `number`, which no other waiting connection has.
  void Arrive(const PeerKey& peer, int number, Descriptor socket);
  // The connection has ended. Closes its socket if the connection waits; false if it does not wait.
  bool Withdraw(int number);
  // Waits for the next connection that may be handed over, and gives it a slot. Nothing once Stop was called.
  std::optional<Next> AwaitNext();
  // Ends the connections that wait.
  void Stop();

  size_t waiting() const;

 private:
  struct Waiting {
    int number = 0;
    Descriptor socket;
  };
  struct PeerQueue {
    PeerKey peer;
    std::map<uint64_t, Waiting> waiting;  // by ticket, never empty
  };
  using Peers = std::list<PeerQueue>;
  struct QueuePosition {
    Peers::iterator peer_queue;
    uint64_t ticket;
  };

  HandshakePace(Runtime& runtime, Duration slot_time_for_peer)
      : runtime_(runtime), slot_time_for_peer_(slot_time_for_peer), mutex_(runtime) {}
  void End(uint64_t ticket);
  void PeerIsAwaited(uint64_t ticket);
  // Ends the slots that have expired. Returns the time at which the next one expires.
  Deadline ExpireLocked() DEUT_REQUIRES(mutex_);
  // Removes and returns the first connection of the address that is next.
  std::pair<uint64_t, Waiting> PopLocked() DEUT_REQUIRES(mutex_);
  Waiting EraseLocked(Peers::iterator peer_queue, std::map<uint64_t, Waiting>::iterator at) DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  const Duration slot_time_for_peer_;
  mutable Mutex mutex_;
  bool stopped_ DEUT_GUARDED_BY(mutex_) = false;
  uint64_t last_ticket_ DEUT_GUARDED_BY(mutex_) = 0;
  Peers peers_ DEUT_GUARDED_BY(mutex_);  // the front one is next
  absl::flat_hash_map<PeerKey, Peers::iterator> by_peer_ DEUT_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, QueuePosition> by_number_ DEUT_GUARDED_BY(mutex_);
  // Slots by ticket, with the time at which each expires. At most kMaxHandshakesInFlight.
  std::map<uint64_t, MonotonicTime> slots_ DEUT_GUARDED_BY(mutex_);
  CondVar changed_;
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_HANDSHAKE_PACE_H_
