// DataComponentHost: references to the objects that the streams of a data component's server share. Ownership: borrows
// all of them.
#ifndef PROTOCOL_DATA_DATA_COMPONENT_HOST_H_
#define PROTOCOL_DATA_DATA_COMPONENT_HOST_H_

#include <cstddef>

#include "common/runtime/runtime.h"
#include "protocol/connections/stream_quota.h"
#include "protocol/data_component.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/stream_watchdog.h"

namespace deut {

struct DataComponentHost {
  Runtime& runtime;
  RpcExecutor& executor;
  DataComponent& component;
  StreamWatchdog& writes;  // cancels streams whose peer does not take its answers
  StreamQuota& streams;
  size_t data_requests;  // RpcServiceOptions::data_requests
};

}  // namespace deut

#endif  // PROTOCOL_DATA_DATA_COMPONENT_HOST_H_
