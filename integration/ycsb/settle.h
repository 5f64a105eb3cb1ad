// Settle: waits until the data component holds all that was committed and the transaction component keeps none of it in memory, so that
// what is measured next does not compete with the work before it, and reads mostly from the DC.
// Thread-safety: any thread. Other clients' open transactions keep the store from settling.
#ifndef INTEGRATION_YCSB_SETTLE_H_
#define INTEGRATION_YCSB_SETTLE_H_

#include <functional>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "tc/client/client.h"

namespace deut::ycsb {

struct SettleOptions {
  // One question to the store; between two of them progress is told.
  Duration step = seconds(1);
  // Given up when for so long the store did not get on: DEADLINE_EXCEEDED, with what is left to do.
  Duration stall = seconds(60);
  // While UNAVAILABLE is answered it goes on, too (for runs in which daemons are killed); else that ends it.
  bool tolerate_unavailable = false;
};

// `progress` may be empty; it gets lines without their end.
Status Settle(Client& client, const SettleOptions& options, const std::function<void(std::string_view)>& progress);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_SETTLE_H_
