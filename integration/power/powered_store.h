// PoweredStore: one life of a whole store (TC, DC and client in this process, as integration/embedded has them) on a disk that may fail at any
// moment. The end of the redo log, at which a tcd stops the process, is here an event: the store answers with errors until it is destroyed.
// Thread-safety: client() and failed() from any thread. Ownership: storage and pages outlive it; transactions end before it.
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
#include "protocol/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/server/transaction_component.h"

namespace deut::power {

// Of the DC whose pages are on the same disk.
constexpr char kDcDirectory[] = "/store/dc";
constexpr char kTcDirectory[] = "/store/tc";

struct StoreSizes {
  Duration device_timeout = seconds(60);
  // Which sizes the DC's pages, segments, memory and checkpoints have: drawn from it, the same for the same number. 0: the usual ones.
  uint64_t drawn_from = 0;
  bool quiet = false;  // does little in the background: for a life that only looks
};

class PoweredStore {
 public:
  // Returns when it serves; else with the reason: the log's failure, or why it is refused. `pages` null: the DC's pages are on `storage`,
  // too; else it keeps them there. Gives up when `lost_power` says so: a DC that cannot write keeps the TC waiting.
  static Result<std::unique_ptr<PoweredStore>> Open(Storage& storage, KeptPages* pages,
                                                    const std::function<bool()>& lost_power, const StoreSizes& sizes);
  ~PoweredStore();
  PoweredStore(const PoweredStore&) = delete;
  PoweredStore& operator=(const PoweredStore&) = delete;

  Client& client() { return *client_; }
  // The log's failure, or why the TC refuses to serve; OK while neither is.
  Status failure();
  // Waits for one. False: there is none at the deadline.
  bool WaitFailed(Deadline deadline) { return failed_.Wait(RealRuntime(), deadline); }
  // A counter of the DC; 0 if nobody can say.
  uint64_t dc_counter(std::string_view name);
  // Of the oldest record that the log still has; 0 if nobody can say.
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
