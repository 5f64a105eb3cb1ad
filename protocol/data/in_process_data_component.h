// InProcessDataComponent: a data component in this process that can end and start again. Embedded mode and tests use
// it. Kill and Start are to the TC what killing and restarting a dcd is, and the same TC code handles both (X3, X4).
//
// Incarnations: Start makes a new object with the factory, which is a new incarnation. Kill ends it in this order:
// - new calls answer UNAVAILABLE, and Kill waits for running ones;
// - Kill destroys the incarnation's streams, and each ApplyLog listener gets its OnClosed(UNAVAILABLE);
// - Kill destroys the object.
// REQUIRES, of the factory's objects: the destructor ends all requests, direct reads included, before it returns;
// Abandon accepts requests that the object does not know.
// Thread-safety: any thread may call any method; Start and Kill exclude each other. Streams are as in data_component.h.
// They may outlive their incarnation, and then every call answers UNAVAILABLE, but not this object.
// Reads and scans take no lock here. CallDrain keeps the object alive while a call runs. Streams live in nodes that are
// reused and never freed.
#ifndef PROTOCOL_DATA_IN_PROCESS_DATA_COMPONENT_H_
#define PROTOCOL_DATA_IN_PROCESS_DATA_COMPONENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/call_drain.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"

namespace deut {

class InProcessDataComponent final : public DataComponent {
 public:
  using Factory = std::function<Result<std::unique_ptr<DataComponent>>()>;

  // No incarnation runs yet. `runtime` outlives this object.
  InProcessDataComponent(Runtime& runtime, Factory factory);
  ~InProcessDataComponent() override;  // calls Kill
  InProcessDataComponent(const InProcessDataComponent&) = delete;
  InProcessDataComponent& operator=(const InProcessDataComponent&) = delete;

  // Returns the factory's error if it fails, and WRONG_STATE if an incarnation is running.
  Status Start();
  // Returns when the incarnation has ended completely. Does nothing if none is running. REQUIRES: the caller is not a
  // listener.
  void Kill();

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override;
  // Returns the incarnation's own object, which does not check here whether the incarnation still runs.
  std::shared_ptr<DirectReads> OpenReads(const Sender& sender) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  template <typename Node>
  class NodeList;
  struct ScanNode;
  struct ApplyNode;
  class Scan;
  class ApplyLog;

  // For a call that was not admitted: returns when the Kill that closed calls_inside_, if it still runs, is over. The
  // incarnation to which the caller's request or stream belongs has then ended.
  void WaitKilled();

  Runtime& runtime_;
  const Factory factory_;
  Mutex mutex_;  // held by Start and Kill
  CallDrain calls_inside_;
  std::unique_ptr<DataComponent> component_;  // changes only while calls_inside_ is closed and no call is inside
  std::atomic<uint32_t> kills_{0};            // twice the number of ended incarnations; odd while Kill runs
  const std::unique_ptr<NodeList<ScanNode>> scans_;
  const std::unique_ptr<NodeList<ApplyNode>> apply_logs_;
};

}  // namespace deut

#endif  // PROTOCOL_DATA_IN_PROCESS_DATA_COMPONENT_H_
