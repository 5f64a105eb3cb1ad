// StartingDataComponent: a data component that can be spoken to while it still recovers: so that whoever asks hears how far it is, and who waits
// for it is answered at once when it serves.
//
// States: recovering -> serving, or recovering -> failed; the latter is told to `on_failed`, and the process ends.
// While it recovers: Hello waits for the end of it, up to its deadline; Counters say how far it is; all else is UNAVAILABLE, with that in the
//   message. Serving: every call goes on to the server.
// Thread-safety: all methods from any thread. Ownership: owns the server and the thread that opens it. The destructor gives up what is not
//   finished; REQUIRES that no call is running.
#ifndef DC_SERVER_STARTING_DATA_COMPONENT_H_
#define DC_SERVER_STARTING_DATA_COMPONENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "dc/checkpoint/recovery_progress.h"
#include "dc/server/data_component_server.h"
#include "protocol/data_component.h"

namespace deut::dc {

class StartingDataComponent final : public DataComponent {
 public:
  // `on_failed` is called on the thread that recovers, at most once. `runtime` outlives it.
  StartingDataComponent(const DataComponentOptions& options, Runtime& runtime, ClaimedDirectory claimed,
                        std::function<void()> on_failed);
  ~StartingDataComponent() override;

  // OK: it serves. UNAVAILABLE at the deadline, with how far it is; or why it never will.
  Status WaitServing(Deadline deadline);
  // The same, and its disk answers: UNAVAILABLE while an operation has not come back for DataComponentOptions::disk_slow_after.
  Status Health(Deadline deadline);
  // Makes a recovery that is going on end soon, with CANCELLED.
  void GiveUp() { progress_.given_up = true; }
  // Why it could not be recovered; OK if it could, or that is not known yet.
  Status failure() const;

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<Position> Checkpoint(const Sender& sender, Position up_to, Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  // Null while it does not serve.
  DataComponentServer* server() const { return serving_.load(std::memory_order_acquire); }
  Status Unavailable() const;

  Runtime& runtime_;
  const IncarnationNumber number_;
  const DcIncarnation incarnation_;
  RecoveryProgress progress_;
  std::unique_ptr<DataComponentServer> owned_;  // the thread's, until serving_ names it
  std::atomic<DataComponentServer*> serving_{nullptr};
  Status failure_;  // after over_
  Event over_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_STARTING_DATA_COMPONENT_H_
