// Link: a DataComponent behind a link with delays and damaged log batches. Messages are in flight for some time, as
// are those of a TC that has been replaced without knowing it, which arrive after its successor's. Log batches may lose
// bits. A damaged batch is encoded, damaged and parsed in its wire form. If it no longer parses as a batch, the stream
// ends, as at a server.
// Thread-safety: as DataComponent; any thread may call the other methods. Ownership: the DC outlives the Link, and
// the Link its streams.
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

  // While the link is held, no message arrives. Messages sent meanwhile arrive when it is released.
  void Hold() { held_.store(1); }
  void Release();
  // From now on, every second message on average takes up to this long. 0: no delay.
  void SetDelay(Duration longest) { longest_.store(longest.count(), std::memory_order_relaxed); }
  // A bit is flipped in one of this many log batches. 0: in none.
  void SetCorruption(uint64_t one_in) { corrupt_one_in_.store(one_in, std::memory_order_relaxed); }

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override { dc_.Abandon(request); }
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override { return dc_.Counters(deadline); }

 private:
  class Stream;
  void Travel();

  DataComponent& dc_;
  std::atomic<Duration::rep> longest_{0};
  std::atomic<uint32_t> held_{0};
  std::atomic<uint64_t> corrupt_one_in_{0};
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_LINK_H_
