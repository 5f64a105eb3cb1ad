// InProcessDataComponent: a data component in this process, with lives of its own. Embedded mode and tests use it: killing and starting
// it is to the TC what killing and restarting a dcd is, and the TC's code for that is the same (rules X3, X4).
//
// Lives. Start makes a new object by the factory (a new incarnation); Kill ends it: new calls answer UNAVAILABLE, running ones are
//   waited for, the streams of that life are destroyed (each ApplyLog listener gets its OnClosed, UNAVAILABLE), then the object.
// What the factory's objects must do: end all requests they have been given before their destructor returns, direct reads included, and tolerate
//   Abandon of requests they do not know.
// Thread-safety: all methods from any thread; Start and Kill exclude each other. Streams as in data_component.h; they may outlive
//   their life (then every call answers UNAVAILABLE), not this object.
// Reads and scans take no lock here: CallGate keeps the object alive under a running call; streams live in nodes that are reused and never freed.
#ifndef PROTOCOL_IN_PROCESS_DATA_COMPONENT_H_
#define PROTOCOL_IN_PROCESS_DATA_COMPONENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/call_gate.h"
#include "protocol/data_component.h"

namespace deut {

class InProcessDataComponent final : public DataComponent {
 public:
  using Factory = std::function<Result<std::unique_ptr<DataComponent>>()>;

  // Starts dead; `runtime` outlives it.
  InProcessDataComponent(Runtime& runtime, Factory factory);
  ~InProcessDataComponent() override;  // kills
  InProcessDataComponent(const InProcessDataComponent&) = delete;
  InProcessDataComponent& operator=(const InProcessDataComponent&) = delete;

  // The factory's error if it has one; WRONG_STATE if a life is running.
  Status Start();
  // Returns when nothing of the life is left. Nothing happens if there is none.
  // REQUIRES: not called by a listener.
  void Kill();

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override;
  // The life's own: it is not asked here whether that goes on.
  std::shared_ptr<DirectReads> OpenReads(const Sender& sender) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<Position> Checkpoint(const Sender& sender, Position up_to, Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  template <typename Node>
  class NodeList;
  struct ScanNode;
  struct ApplyNode;
  class Scan;
  class ApplyLog;

  // For who was refused by the gate: returns when the Kill that refused it, if it is still running, is over. The life that the caller's
  // request or stream belongs to has then ended.
  void WaitKilled();

  Runtime& runtime_;
  const Factory factory_;
  Mutex mutex_;  // Start and Kill
  CallGate gate_;
  std::unique_ptr<DataComponent> component_;  // changes only while the gate is closed and empty
  std::atomic<uint32_t> kills_{0};            // twice the lives that have ended; odd while Kill runs
  const std::unique_ptr<NodeList<ScanNode>> scans_;
  const std::unique_ptr<NodeList<ApplyNode>> apply_logs_;
};

}  // namespace deut

#endif  // PROTOCOL_IN_PROCESS_DATA_COMPONENT_H_
