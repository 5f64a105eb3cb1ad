// Settle waits until the data component holds everything that was committed, and the transaction component keeps none
// of it in memory. The next measurement then does not compete with earlier work, and reads mostly from the DC.
// Thread-safety: any thread. Open transactions of other clients keep the store from settling.
#ifndef INTEGRATION_YCSB_SETTLE_H_
#define INTEGRATION_YCSB_SETTLE_H_

#include <functional>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "tc/client/client.h"

namespace deut::ycsb {

struct SettleOptions {
  // Timeout of one request to the store. Progress is reported between two requests.
  Duration step = seconds(1);
  // If the store makes no progress for this long, Settle returns DEADLINE_EXCEEDED, with the work that is left.
  Duration stall = seconds(60);
  // True: Settle continues while the store answers UNAVAILABLE (for runs in which daemons are killed). False: that
  // error ends it.
  bool tolerate_unavailable = false;
};

// `progress` may be empty; it receives lines without a newline.
Status Settle(Client& client, const SettleOptions& options, const std::function<void(std::string_view)>& progress);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_SETTLE_H_
