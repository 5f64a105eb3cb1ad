// ConnectionTable: the connections of a server, and the caps on their number: in all, and for each peer address.
//
// A peer is an address (peer_key.h). A connection of a Unix socket has no address, so only the cap on all connections applies to it.
// A peer that connects and never sends costs as much as a client. A client sends its first bytes at once. So silent connections, those that have not
// received a byte, make room for new ones. When the table is almost full, the oldest silent connections of all peers are shut down. When the arriving
// peer is close to its own cap, the oldest silent connections of that peer are. No peer loses a connection because another peer has many.
// Thread-safety: all methods from any thread. Ownership: owns the watched descriptors, which are duplicates of the connections' own.
#ifndef PROTOCOL_CONNECTIONS_CONNECTION_TABLE_H_
#define PROTOCOL_CONNECTIONS_CONNECTION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/descriptor.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/connections/peer_key.h"

namespace deut {

struct ConnectionLimits {
  size_t max_connections = 1024;
  size_t max_connections_per_peer = 1024;
};

class ConnectionTable {
 public:
  enum class Answer : uint8_t { kAdmitted, kTooMany, kTooManyOfPeer };

  ConnectionTable(Runtime& runtime, ConnectionLimits limits);

  // Counts a new connection of `peer`, or says why it must be refused.
  Answer Admit(const PeerKey& peer);
  // Undoes an Admit whose connection is not added.
  void Withdraw(const PeerKey& peer);
  // Adds an admitted connection; `watched` is a duplicate of its descriptor. Returns the number of the duplicate, by which Remove knows it.
  int Add(const PeerKey& peer, Descriptor watched);
  // The connection has ended. Closes the duplicate. False if the number is unknown.
  bool Remove(int watched);

  // Makes room for a connection of `arriving`: shuts down up to kMaxShutDownPerCall of the oldest silent connections, as described above. Returns
  // their number.
  size_t ShutDownSilent(const PeerKey& arriving);

  // Shuts down all connections.
  void ShutDownAll();

  size_t open() const;
  const ConnectionLimits& limits() const { return limits_; }

  // A connection is called silent only when it is older than this.
  static constexpr Duration kSilentGrace = seconds(1);
  static constexpr size_t kMaxShutDownPerCall = 4;

 private:
  struct Connection {
    PeerKey peer;
    uint64_t number = 0;
    Descriptor watched;
  };
  struct UnprovenConnection {
    int watched;
    uint64_t number;
    MonotonicTime since;
  };
  // Connections that are not known to have sent anything, oldest first. Some of them may have ended.
  using UnprovenList = std::deque<UnprovenConnection>;
  struct PeerConnections {
    size_t open = 0;
    UnprovenList unproven;
  };
  bool IsSilentLocked(const UnprovenConnection& unproven) const DEUT_REQUIRES(mutex_);
  // Appends the newest connection, and removes up to two from the front that have sent something or have ended.
  void AddUnprovenLocked(UnprovenList* list, const UnprovenConnection& newest) DEUT_REQUIRES(mutex_);
  size_t ShutDownSilentLocked(UnprovenList* list) DEUT_REQUIRES(mutex_);
  void WithdrawLocked(const PeerKey& peer) DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  const ConnectionLimits limits_;
  mutable Mutex mutex_;
  size_t open_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t last_number_ DEUT_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<PeerKey, PeerConnections> peers_ DEUT_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, Connection> connections_ DEUT_GUARDED_BY(mutex_);
  UnprovenList unproven_ DEUT_GUARDED_BY(mutex_);  // unproven connections of all peers
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_CONNECTION_TABLE_H_
