// Difficult cases: values of a megabyte, missing segments, checkpoints with false content.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/segment_store.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

// Returns options with pages of the usual size, which record the failure that would have ended the process.
RecordStoreOptions UsualPages(std::vector<Status>* failures) {
  RecordStoreOptions options;
  options.max_pages = 1 << 20;
  options.on_failure = [failures](const Status& status) { failures->push_back(status); };
  return options;
}

// A page on storage accepts updates until it is loaded. They must never exceed the size of one part.
TEST(HardPagesTest, LargeValuesOnAPageThatIsNotInMemory) {
  std::vector<Status> failures;
  World world(UsualPages(&failures));
  world.Create();
  for (uint64_t i = 0; i < 1000; ++i) world.Put(KeyOf(i), std::string(100, 'a'));
  world.Flush();
  ASSERT_TRUE(world.Checkpoint().ok());
  world.Restart();  // now the leaves are on storage
  for (uint64_t i = 0; i < 70; ++i) {
    world.Put(KeyOf(100 + i), std::string(kMaxValueBytes, static_cast<char>('b' + i % 20)));
    world.Flush();
  }
  EXPECT_EQ(world.Checkpoint().ToString(), "OK");
  for (const Status& failure : failures) ADD_FAILURE() << failure.ToString();
  world.Restart();
  world.ExpectRight();
}

// No page is split while a checkpoint records the structure. A page must not exceed the size of one part meanwhile.
TEST(HardPagesTest, LargeValuesWhilePagesAreNotSplit) {
  std::vector<Status> failures;
  World world(UsualPages(&failures));
  world.Create();
  for (uint64_t i = 0; i < 1000; ++i) world.Put(KeyOf(i), std::string(100, 'a'));
  world.Flush();
  std::atomic<bool> closed{false};
  std::atomic<bool> enough{false};
  const auto until = [](const std::atomic<bool>& condition) {
    while (!condition.load()) RealRuntime().SleepUntil(RealRuntime().Now() + std::chrono::microseconds(50));
  };
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "record_ops.update.held") enough.store(true);
    if (name != "checkpoint.before_snapshot" || closed.exchange(true)) return;
    until(enough);
  });
  const auto updates = RealRuntime().StartThread("updates", [&] {
    until(closed);
    for (uint64_t i = 0; i < 70; ++i) {
      world.Put(KeyOf(100 + i), std::string(kMaxValueBytes, static_cast<char>('b' + i % 20)));
      world.Flush();
    }
    enough.store(true);
  });
  EXPECT_EQ(world.Checkpoint().ToString(), "OK");
  updates->Join();
  testing::SetPointHandler({});
  EXPECT_EQ(world.Checkpoint().ToString(), "OK");
  for (const Status& failure : failures) ADD_FAILURE() << failure.ToString();
  world.Restart();
  world.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
