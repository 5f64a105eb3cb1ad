// Link: a DataComponent behind a link on which messages are under way for some time, as the ones of a TC that has been replaced without
// knowing it (they arrive after its successor's), and on which log batches lose bits. A damaged batch is made, damaged and read in the form
// that it has on the wire; where it is not taken for a batch any more the stream ends, as it does at a server.
// Thread-safety: as DataComponent; the rest from any thread. Ownership: the DC outlives this, and this its streams.
#ifndef INTEGRATION_BUGS_LINK_H_
#define INTEGRATION_BUGS_LINK_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"

namespace deut::bugs {

class Link final : public DataComponent {
 public:
  explicit Link(DataComponent& dc) : dc_(dc) {}

  // While it is held nothing arrives; what was sent meanwhile arrives when it is released.
  void Hold() { held_.store(1); }
  void Release();
  // Every second message from now on takes up to this long. 0: none does.
  void SetDelay(Duration longest) { longest_.store(longest.count(), std::memory_order_relaxed); }
  // In one of so many log batches a bit is flipped. 0: in none.
  void SetNoise(uint64_t one_in) { noise_.store(one_in, std::memory_order_relaxed); }

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override { dc_.Abandon(request); }
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<Position> Checkpoint(const Sender& sender, Position up_to, Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override { return dc_.Counters(deadline); }

 private:
  class Stream;
  void Travel();

  DataComponent& dc_;
  std::atomic<Duration::rep> longest_{0};
  std::atomic<uint32_t> held_{0};
  std::atomic<uint64_t> noise_{0};
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_LINK_H_
