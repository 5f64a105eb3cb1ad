// The limit of pages falls, because other parts of the process need memory: pages leave memory at once.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/process_budget.h"
#include "common/testing/forwarding_runtime.h"
#include "dc/page_cache/memory_budget.h"
#include "dc/record_ops/log_maker.h"
#include "dc/store/record_store.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/table_options.h"

namespace deut::dc {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr Duration kShort = std::chrono::milliseconds(10);

// The evictor does not look by itself whether there is work: it sleeps until it is woken. Its short pauses end.
class SleepyEvictor final : public testing::ForwardingRuntime {
 public:
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    const bool evictor = name == "dc-evictor";
    return ForwardingRuntime::StartThread(std::move(name), [evictor, body = std::move(body)] {
      sleepy = evictor;
      body();
    });
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    const bool looks = sleepy && deadline != kNoDeadline && deadline > Now() + kShort;
    return ForwardingRuntime::Wait(word, expected, looks ? kNoDeadline : deadline);
  }

 private:
  static thread_local bool sleepy;
};
thread_local bool SleepyEvictor::sleepy = false;

TEST(FallingLimitTest, AFallingLimitWakesTheEvictor) {
  SleepyEvictor runtime;
  std::atomic<uint64_t> resident{1 * kMiB};
  ProcessBudget budget(runtime, 128 * kMiB, {.resident_bytes = [&resident] { return resident.load(); }});
  RecordStoreOptions options = SmallPages(0);
  options.memory_bytes.reset();
  options.process_budget = &budget;
  options.merge_interval = std::chrono::hours(1);
  const std::unique_ptr<Storage> storage = NewMemoryStorage(runtime);
  Result<std::unique_ptr<RecordStore>> opened =
      RecordStore::Open(runtime, {*storage, "/pages", DcId(7), DcIncarnation(1)}, options);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  RecordStore& store = **opened;

  LogMaker log;
  Position applied = store.recovered();
  log.Add(LogEntryKind::kCreateTable, kTable, "table", EncodeTableOptions({}));
  const std::string value(1000, 'v');
  for (int n = 0; store.memory_bytes() < 2 * MemoryBudget::kLeastLimit; ++n) {
    ASSERT_LT(n, 100'000);
    log.Add(LogEntryKind::kPut, kTable, Concat("key ", 1'000'000 + n), value);
    if (n % 100 != 0) continue;
    const LogBatch batch = log.Take();
    ASSERT_TRUE(store.operations().ApplyBatch(batch, applied).ok());
    applied = batch.to;
  }
  ASSERT_EQ(CounterOf(store, "pages_swapped_out"), 0u) << "there was memory enough";

  resident.store(1024 * kMiB);
  const MonotonicTime patience = runtime.Now() + std::chrono::seconds(30);
  do {
    budget.Measure();
    runtime.Yield();
  } while (store.memory_bytes() > MemoryBudget::kLeastLimit && runtime.Now() < patience);
  EXPECT_EQ(CounterOf(store, "memory_limit_bytes"), MemoryBudget::kLeastLimit);
  EXPECT_LE(store.memory_bytes(), MemoryBudget::kLeastLimit);
  EXPECT_GT(CounterOf(store, "pages_swapped_out"), 0u);
}

}  // namespace
}  // namespace deut::dc
