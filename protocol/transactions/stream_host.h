// StreamHost: references to the objects that the streams of a transaction service's server share. Ownership: borrows
// all of them.
#ifndef PROTOCOL_TRANSACTIONS_STREAM_HOST_H_
#define PROTOCOL_TRANSACTIONS_STREAM_HOST_H_

#include "common/runtime/runtime.h"
#include "protocol/connections/stream_quota.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/stream_watchdog.h"
#include "protocol/transactions/one_shot_scheduler.h"
#include "protocol/transactions/peer_service.h"

namespace deut {

struct StreamHost {
  Runtime& runtime;
  RpcExecutor& executor;
  StreamWatchdog& writes;  // peers that take nothing
  StreamWatchdog& idle;    // sessions, and streams of one-shots, that ask for nothing
  StreamQuota& streams;
  PeerServices& services;
  const OneShotSchedulerFactory& one_shots;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_STREAM_HOST_H_
