// PoweredStore: one life of a whole store (TC, DC and client in this process, as in integration/product/embedded) on a disk
// that may fail at any moment. A failure of the redo log, which ends the process of a tcd, is an event here: the
// store answers with errors until it is destroyed.
// Thread-safety: any thread may call client(), failure() and WaitFailed(). Ownership: storage and pages outlive the
// store; transactions end before it.
#ifndef INTEGRATION_POWER_POWERED_STORE_H_
#define INTEGRATION_POWER_POWERED_STORE_H_

#include <functional>
#include <memory>
#include <string_view>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "integration/power/checkpointing_dc.h"
#include "protocol/data/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/server/transaction_component.h"

namespace deut::power {

// Directory of a DC whose pages are on the same disk as the log.
constexpr char kDcDirectory[] = "/store/dc";
constexpr char kTcDirectory[] = "/store/tc";

struct StoreSizes {
  Duration device_timeout = seconds(60);
  // Seed of the sizes of the DC's pages, segments, memory and checkpoints: equal seeds give equal sizes. 0: the usual
  // sizes.
  uint64_t drawn_from = 0;
  bool little_background = false;  // little background work, for a life that only reads
};

class PoweredStore {
 public:
  // Returns when the store serves, else with the reason: the log's failure, or the reason for a refusal. If `pages`
  // is null, the DC's pages are on `storage`; else the DC keeps its records in `pages`. Gives up when `lost_power`
  // returns true, because a DC that cannot write would make the TC wait forever.
  static Result<std::unique_ptr<PoweredStore>> Open(Storage& storage, KeptPages* pages,
                                                    const std::function<bool()>& lost_power, const StoreSizes& sizes);
  ~PoweredStore();
  PoweredStore(const PoweredStore&) = delete;
  PoweredStore& operator=(const PoweredStore&) = delete;

  Client& client() { return *client_; }
  // Returns the log's failure, or the reason why the TC refuses to serve; OK if there is neither.
  Status failure();
  // Waits for a failure. Returns false if there is none at the deadline.
  bool WaitFailed(Deadline deadline) { return failed_.Wait(RealRuntime(), deadline); }
  // Returns a counter of the DC; 0 if the DC does not answer.
  uint64_t dc_counter(std::string_view name);
  // Returns the LSN of the log's oldest record; 0 if the TC does not answer.
  uint64_t first_lsn();

 private:
  PoweredStore() : mutex_(RealRuntime()) {}
  void Fail(const Status& status);

  Mutex mutex_;
  Event failed_;
  Status failure_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<InProcessDataComponent> dc_;
  std::unique_ptr<tc::TransactionComponent> tc_;
  std::unique_ptr<Client> client_;
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_POWERED_STORE_H_
