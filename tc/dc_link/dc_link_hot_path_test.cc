// Reads through an open gate allocate nothing of their own ("hot path" in common/GLOSSARY.md).
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "tc/dc_link/dc_link.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/dc_link/link_harness.h"

namespace {

thread_local uint64_t allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace deut::tc {
namespace {

// The fake DC, except that point reads are answered at once and without an allocation.
class QuickReads final : public DataComponent {
 public:
  explicit QuickReads(FakeDataComponent& dc) : dc_(dc) {}
  void Submit(absl::Span<DataRequest* const> requests) override {
    for (DataRequest* request : requests) {
      request->answered_by = request->sender.incarnation;
      request->answer.Append(request->key, "value", Version{Timestamp{1}, 1});
      request->Finish(RealRuntime());
    }
  }
  void Abandon(DataRequest* request) override { dc_.Abandon(request); }
  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override {
    return dc_.Hello(request, deadline);
  }
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override {
    return dc_.OpenScan(sender, spec, deadline);
  }
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override {
    return dc_.OpenApplyLog(sender, listener, deadline);
  }
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override {
    return dc_.Partition(sender, table, n, deadline);
  }
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override {
    return dc_.Tables(sender, deadline);
  }
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override { return dc_.Counters(deadline); }

 private:
  FakeDataComponent& dc_;
};

TEST(DcLinkHotPathTest, ReadsThroughAnOpenGateAllocateNothing) {
  LinkHarness h;
  h.dc.Start();
  h.StartTc();
  h.StopTc();
  QuickReads dc(h.dc);
  auto storage = h.disk.Mount();
  auto log = RedoLog::Open(h.log_options, RealRuntime(), *storage, &h.recovered);
  ASSERT_TRUE(log.ok());
  h.transactions.set_log(log->get());
  {
    DcLink link(RealRuntime(), dc, **log, h.recovered, h.transactions, h.transactions, h.link_options);
    link.Start();
    ASSERT_TRUE(link.WaitCaughtUp(LinkHarness::Soon()).ok());
    DataRequest requests[3];
    DataRequest* pointers[3] = {&requests[0], &requests[1], &requests[2]};
    for (DataRequest& request : requests) request.key = "key";
    ASSERT_TRUE(link.Read(pointers, LinkHarness::Soon()).ok());  // buffers grow to their size
    const uint64_t before = allocations;
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(link.Read(pointers, LinkHarness::Soon()).ok());
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(link.HasSpace(100) && link.applied() >= Position{});
    EXPECT_EQ(allocations, before);
  }
  (*log)->Stop();
}

}  // namespace
}  // namespace deut::tc
