// StreamQuota: limits the open streams (or single calls) of a server, in all and for each peer, so that no peer keeps the others out. It also limits
// the streams that work at the same time, because each of these has a thread. A stream beyond the limit is refused; work beyond the limit waits.
// A peer is the name in its certificate, however many connections it has. Without TLS it is the address of its host, again for all its connections
//   (peer_key.h). So hosts behind one proxy or NAT are one peer, and so are all clients of a Unix socket.
// Peers share the slots so that a new peer always finds room (Enter):
//   A peer may open one more stream while it has fewer than kShareOfFree times the free ones. So the first peer may have three quarters, and each
//     later peer leaves a quarter of the room that it has found.
//   The last sixteenth of all slots is for peers that have fewer than kGuaranteedPerPeer. So a sixteenth of the slots, divided by kGuaranteedPerPeer,
//     is the least number of peers that find room, however many streams the others have opened before.
// Peers share the slots for work in the same way (BeginWork), because each request that waits holds a thread.
//   A request without a slot waits for the end of another request of its peer. A peer always gets at least one slot, so there is one to end.
//   When a request of a peer ends, up to kMaxResumedPerEnd waiting requests of that peer begin, as far as the peer's share allows at that time. So a
//     peer gets more slots when the others leave it more room, and fewer when its share has become smaller.
// *Counter-example without shares of work.* A mere limit for each peer leaves a quarter of the threads to the others. A second peer takes that
//   quarter, and no third peer is served while the requests of both wait.
// Thread-safety: all methods from any thread. Ownership: outlives its slots.
#ifndef PROTOCOL_CONNECTIONS_STREAM_QUOTA_H_
#define PROTOCOL_CONNECTIONS_STREAM_QUOTA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/server_context.h"

namespace deut {

class StreamQuota {
 public:
  static constexpr size_t kShareOfFree = 3;
  static constexpr size_t kGuaranteedPerPeer = 4;
  static constexpr size_t kReservedDivisor = 16;
  static constexpr size_t kMaxResumedPerEnd = 2;

  struct Options {
    size_t in_all = 0;
    size_t per_peer = 0;
    // The most streams that work at the same time: of one peer, and of all. A peer without any still gets a slot when all are taken.
    size_t work_per_peer = SIZE_MAX;
    size_t work_in_all = SIZE_MAX;
    std::string what = "streams";
    // The flags that set the two limits, for the message of a refusal.
    std::string in_all_flag = "--max_threads";
    std::string per_peer_flag = "--max_streams_per_peer";
  };

  StreamQuota(Runtime& runtime, Options options);

 private:
  struct Peer {
    Peer(Runtime& runtime, std::string its_name) : name(std::move(its_name)), mutex(runtime) {}
    const std::string name;
    size_t open = 0;  // under the quota's lock
    Mutex mutex;
    size_t working DEUT_GUARDED_BY(mutex) = 0;
    std::deque<std::function<void()>> waiting DEUT_GUARDED_BY(mutex);
  };

 public:
  // One open stream; its destructor gives the slot back.
  class Slot {
   public:
    Slot() = default;
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    // REQUIRES, for these three methods: the slot was entered (Enter).
    // False: the peer has as many slots for work as it may have now.
    bool TryBeginWork();
    // True: the stream is at work. False: it is at work from the call of `resume` on. A thread that ends its own work calls `resume`, and does not
    // wait for this stream's work.
    bool BeginWork(std::function<void()> resume);
    void EndWork();

   private:
    friend class StreamQuota;
    bool TryBeginWorkLocked() DEUT_REQUIRES(peer_->mutex);
    StreamQuota* quota_ = nullptr;
    Peer* peer_ = nullptr;
  };

  // Takes a slot for a stream. RESOURCE_EXHAUSTED names the limit, its figure and its flag, and the number of open streams.
  Status Enter(const grpc::ServerContextBase& context, Slot* slot);
  Status Enter(const std::string& peer, Slot* slot);

  static std::string PeerOf(const grpc::ServerContextBase& context);

  size_t open();

 private:
  void Leave(Peer* peer);
  // Returns how many of `in_all` slots a peer may have while all peers together have `taken`. The last `reserved` slots are for peers with fewer than
  // `guaranteed`.
  static size_t ShareOf(size_t in_all, size_t taken, size_t reserved, size_t guaranteed);
  size_t WorkShare(size_t working) const;

  const Options options_;
  Runtime& runtime_;
  Mutex mutex_;
  size_t open_ DEUT_GUARDED_BY(mutex_) = 0;
  std::atomic<size_t> working_{0};  // streams of all peers at work; a mere count, so relaxed accesses suffice
  absl::flat_hash_map<std::string, std::unique_ptr<Peer>> peers_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_STREAM_QUOTA_H_
