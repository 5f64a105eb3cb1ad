// ConnectionTable: the connections of a server, with the caps on them: how many there may be in all, and from one peer address.
//
// A peer is an IPv4 address, or the first 64 bits of an IPv6 address, because a host is usually given 2^64 of those. A connection of a Unix
// socket has no peer address: only the cap on all holds.
// A peer that connects and never sends costs as much as a client. A client sends its first bytes at once. So silent connections, those without a byte
// from their peers, make way for new ones: when the table is almost full the oldest silent ones of all peers are shut down, and when the
// arriving peer has almost as many as one may have, the oldest silent ones of that peer. Nobody loses a connection because another peer has many.
// Thread-safety: all methods from any thread. Ownership: owns the watched descriptors, which are duplicates of the connections' own.
#ifndef PROTOCOL_CONNECTION_TABLE_H_
#define PROTOCOL_CONNECTION_TABLE_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/descriptor.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

struct ConnectionLimits {
  size_t max_connections = 1024;
  size_t max_connections_per_peer = 1024;
};

// The address by which a peer is counted.
struct PeerKey {
  in6_addr address = {};  // an IPv4 address is mapped; of an IPv6 address the first half
  bool counted = false;   // false: no address
  static PeerKey Of(const sockaddr_storage& name);
  std::string ToString() const;
  friend bool operator==(const PeerKey& a, const PeerKey& b);
  template <typename H>
  friend H AbslHashValue(H h, const PeerKey& key) {
    return H::combine(H::combine_contiguous(std::move(h), key.address.s6_addr, sizeof(key.address.s6_addr)),
                      key.counted);
  }
};

class ConnectionTable {
 public:
  enum class Answer : uint8_t { kAdmitted, kTooMany, kTooManyOfPeer };

  ConnectionTable(Runtime& runtime, ConnectionLimits limits);

  // Counts a new connection of `peer`, or says why it must be refused.
  Answer Admit(const PeerKey& peer);
  // Undoes an admission that came to nothing.
  void Withdraw(const PeerKey& peer);
  // `watched` is a duplicate of the admitted connection's descriptor. Returns its number, by which Remove knows it.
  int Add(const PeerKey& peer, Descriptor watched);
  // The connection has ended. Closes the duplicate. False if the number is unknown.
  bool Remove(int watched);

  // Makes room for a connection of `arriving`: shuts down up to kMostShutDown of the oldest silent connections, as said above. Returns how many.
  size_t ShutDownSilent(const PeerKey& arriving);

  // Shuts down all connections.
  void ShutDownAll();

  size_t open() const;
  const ConnectionLimits& limits() const { return limits_; }

  // A connection is called silent only when it is older than this.
  static constexpr Duration kSilentGrace = seconds(1);
  static constexpr size_t kMostShutDown = 4;

 private:
  struct Connection {
    PeerKey peer;
    uint64_t number = 0;
    Descriptor watched;
  };
  struct Young {
    int watched;
    uint64_t number;
    MonotonicTime since;
  };
  // Connections that are not known to have sent anything, oldest first. Some have ended.
  using YoungList = std::deque<Young>;
  struct OfPeer {
    size_t open = 0;
    YoungList young;
  };
  bool IsSilentLocked(const Young& young) const DEUT_REQUIRES(mutex_);
  // Appends the newest, and removes from the front what need not be in the list.
  void AddYoungLocked(YoungList* list, const Young& newest) DEUT_REQUIRES(mutex_);
  size_t ShutDownSilentLocked(YoungList* list) DEUT_REQUIRES(mutex_);
  void WithdrawLocked(const PeerKey& peer) DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  const ConnectionLimits limits_;
  mutable Mutex mutex_;
  size_t open_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t last_number_ DEUT_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<PeerKey, OfPeer> peers_ DEUT_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, Connection> connections_ DEUT_GUARDED_BY(mutex_);
  YoungList young_ DEUT_GUARDED_BY(mutex_);  // of all peers
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTION_TABLE_H_
