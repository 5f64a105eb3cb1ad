// StartingDataComponent: a data component that accepts calls while it still recovers. Callers learn its progress, and
// a waiting Hello is answered as soon as it serves.
//
// States: recovering -> serving, or recovering -> failed. A failure is reported to `on_failed`, and the process ends.
// - While it recovers, Hello waits for the end of recovery, at most until its deadline. Counters return the progress.
//   All other calls return UNAVAILABLE with the progress in the message.
// - While it serves, it forwards every call to the server.
// Thread-safety: all methods from any thread. Ownership: owns the server and the thread that opens it. The destructor
// cancels an unfinished recovery; REQUIRES: no call is running.
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

  // OK: it serves. UNAVAILABLE: the deadline has passed (with the progress), or the recovery has failed (with the
  // reason).
  Status WaitServing(Deadline deadline);
  // As WaitServing, and also checks the disk: UNAVAILABLE while a disk operation hangs for more than
  // DataComponentOptions::disk_slow_after.
  Status Health(Deadline deadline);
  // Makes a running recovery end soon, with CANCELLED.
  void GiveUp() { progress_.given_up = true; }
  // Why the recovery failed; OK if it succeeded or still runs.
  Status failure() const;

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  // Null until it serves.
  DataComponentServer* server() const { return serving_.load(std::memory_order_acquire); }
  Status Unavailable() const;

  Runtime& runtime_;
  const IncarnationNumber number_;
  const DcIncarnation incarnation_;
  RecoveryProgress progress_;
  std::unique_ptr<DataComponentServer> owned_;  // used only by the thread, until serving_ points to it
  std::atomic<DataComponentServer*> serving_{nullptr};
  Status failure_;  // valid after over_
  Event over_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_STARTING_DATA_COMPONENT_H_
