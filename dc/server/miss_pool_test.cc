#include "dc/server/miss_pool.h"

#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "dc/server/call_grace_period.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"

namespace deut::dc {
namespace {

TEST(MissPoolTest, AnswersAllThatIsQueuedAlsoWhenItEnds) {
  CallGracePeriod calls(RealRuntime());
  std::vector<DataRequest> requests(200);
  std::atomic<int> answered{0};
  {
    MissPool pool(RealRuntime(), calls, 3, [&](DataRequest* request) {
      request->done.Signal(RealRuntime());
      answered.fetch_add(1);
    });
    for (DataRequest& request : requests) pool.Add(&request);
  }
  EXPECT_EQ(answered.load(), 200);
  for (DataRequest& request : requests) EXPECT_TRUE(request.done.IsSet());
}

// A request that blocks delays only the requests behind it that no other thread can take.
TEST(MissPoolTest, ARequestThatWaitsForTheDiskDelaysNoOther) {
  CallGracePeriod calls(RealRuntime());
  DataRequest slow;
  DataRequest quick;
  Event disk;
  MissPool pool(RealRuntime(), calls, 2, [&](DataRequest* request) {
    if (request == &slow) disk.Wait(RealRuntime(), kNoDeadline);
    request->done.Signal(RealRuntime());
  });
  pool.Add(&slow);
  pool.Add(&quick);
  EXPECT_TRUE(quick.done.Wait(RealRuntime(), kNoDeadline));
  EXPECT_FALSE(slow.done.IsSet());
  disk.Signal(RealRuntime());
  EXPECT_TRUE(slow.done.Wait(RealRuntime(), kNoDeadline));
}

// A removed request is not touched: the thread that abandons it may free it at once.
TEST(MissPoolTest, ARequestRemovedWhileQueuedIsNeverAnswered) {
  CallGracePeriod calls(RealRuntime());
  DataRequest first;
  DataRequest last;
  auto removed = std::make_unique<DataRequest>();
  const DataRequest* const gone = removed.get();
  Event begun;
  Event disk;
  std::atomic<bool> touched{false};
  MissPool pool(RealRuntime(), calls, 1, [&](DataRequest* request) {
    if (request == gone) touched.store(true);
    if (request == &first) {
      begun.Signal(RealRuntime());
      disk.Wait(RealRuntime(), kNoDeadline);
    }
    request->done.Signal(RealRuntime());
  });
  pool.Add(&first);
  ASSERT_TRUE(begun.Wait(RealRuntime(), kNoDeadline));
  pool.Add(removed.get());
  pool.Add(&last);
  pool.Remove(removed.get());
  removed.reset();
  disk.Signal(RealRuntime());
  EXPECT_TRUE(last.done.Wait(RealRuntime(), kNoDeadline));
  EXPECT_FALSE(touched.load());
}

}  // namespace
}  // namespace deut::dc
