// RpcServiceOptions: bounds on the resources that a service holds for its peers, and for how long. Thread-safety: a
// value.
#ifndef PROTOCOL_RPC_SERVICE_OPTIONS_H_
#define PROTOCOL_RPC_SERVICE_OPTIONS_H_

#include <algorithm>
#include <cstddef>

#include "common/runtime/runtime.h"
#include "protocol/connections/stream_quota.h"

namespace deut {

struct RpcServiceOptions {
  // A peer that takes nothing that is sent to it for this long loses its stream.
  Duration stuck_peer = seconds(30);
  // The most requests of one Data stream that the component has, or that are answered and not written yet.
  size_t data_requests = 256;
  // The number of streams and calls for which the server has threads (RpcServerOptions::max_threads).
  int threads = 1024;
  // The most open streams of clients. They hold no thread while they wait.
  size_t max_streams = 16384;
  // The most open streams of one peer; 0: three quarters of the bound for all peers (at a DC: of the threads).
  size_t streams_per_peer = 0;
  // A session, or a stream of one-shot transactions, is ended when it has sent no request for this long.
  Duration idle_session = std::chrono::hours(1);

  StreamQuota::Options open_streams() const {
    return {.in_all = max_streams,
            .per_peer = std::min(max_streams, streams_per_peer != 0 ? streams_per_peer : max_streams * 3 / 4),
            // A quarter of the threads is left to the other peers, even if all of this peer's requests wait.
            .work_per_peer = std::max<size_t>(1, static_cast<size_t>(threads) * 3 / 4),
            // One thread is kept for events that do not block, and one in sixteen for single calls (rpc_executor.h).
            .work_in_all = std::max<size_t>(1, static_cast<size_t>(threads - threads / 16 - 1)),
            .in_all_flag = "--max_streams"};
  }

  // At a DC each stream may block a thread. So one thread in sixteen, and at least four, are kept for single calls:
  // tables, counters, Hello.
  StreamQuota::Options streams() const {
    const auto all = static_cast<size_t>(threads);
    const size_t kept = std::max<size_t>(4, all / 16);
    const size_t in_all = all > kept ? all - kept : 1;
    return {.in_all = in_all, .per_peer = std::min(in_all, streams_per_peer != 0 ? streams_per_peer : all * 3 / 4)};
  }
  // The single calls of one peer, together with its streams, leave an eighth of the threads to the other peers.
  StreamQuota::Options calls() const {
    const auto all = static_cast<size_t>(threads);
    return {.in_all = all,
            .per_peer = std::max<size_t>(1, all / 8),
            .what = "single calls",
            .in_all_flag = "--max_threads",
            .per_peer_flag = "an eighth of --max_threads"};
  }
};

}  // namespace deut

#endif  // PROTOCOL_RPC_SERVICE_OPTIONS_H_
