// StreamHost: what the streams of a transaction service's server share. Ownership: borrows everything.
#ifndef PROTOCOL_STREAM_HOST_H_
#define PROTOCOL_STREAM_HOST_H_

#include "common/runtime/runtime.h"
#include "protocol/peer_service.h"
#include "protocol/rpc_executor.h"
#include "protocol/stream_quota.h"
#include "protocol/stream_watchdog.h"

namespace deut {

struct StreamHost {
  Runtime& runtime;
  RpcExecutor& executor;
  StreamWatchdog& writes;  // peers that take nothing
  StreamWatchdog& idle;    // sessions that ask for nothing
  StreamQuota& streams;
  PeerServices& services;
};

}  // namespace deut

#endif  // PROTOCOL_STREAM_HOST_H_
