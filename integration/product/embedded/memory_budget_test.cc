// The memory budget of an embedded store (EmbeddedOptions::memory_bytes): the resident memory of this process, the test
// itself included, while data larger than the budget is loaded, read and updated.
//   DEUT_DATA_MIB    bytes of values (default 512)
//   DEUT_MEMORY_MIB  the budget (default 256)
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/process_memory.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"
#include "integration/harness/memory_group.h"
#include "integration/product/embedded/embedded.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kValueBytes = 1000;
constexpr uint64_t kBatch = 100;
constexpr uint64_t kThreads = 2;
constexpr uint64_t kHotKeys = 1000;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class MemoryBudgetTest : public ::testing::Test {
 protected:
  void Open(std::optional<uint64_t> memory_bytes) {
    EmbeddedOptions options;
    options.data_dir = dir_.path();
    options.memory_bytes = memory_bytes;
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
    const Result<TableId> table = store_->client().CreateTable("records");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
  }
  uint64_t Counter(std::string_view name) {
    const Result<ServiceStatus> status = store_->client().GetStatus();
    if (!status.ok()) return 0;
    for (const auto* counters : {&status->tc, &status->dc}) {
      for (const CounterValue& counter : *counters) {
        if (counter.name == name) return counter.value;
      }
    }
    return 0;
  }
  // The order of the keys has no relation to the order of the load, so writes spread over all pages.
  static std::string KeyOf(uint64_t n) { return Concat("user", Mix64(n)); }
  // The digits cannot be compressed away, and tell the key.
  static std::string ValueOf(uint64_t n, uint64_t version) {
    Random random(Mix64(n) ^ version);
    std::string value(kValueBytes, ' ');
    for (char& c : value) c = static_cast<char>('0' + random.Below(10));
    return value;
  }
  // Calls `work` for the batches of [0, units) on all threads.
  template <typename Work>
  void OnThreads(uint64_t units, const Work& work) {
    std::atomic<uint64_t> next{0};
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      threads.push_back(RealRuntime().StartThread("worker", [&] {
        for (uint64_t at = 0; !failed_.load() && (at = next.fetch_add(kBatch)) < units;) {
          if (const Status done = work(at); !done.ok()) {
            failed_.store(true);
            ADD_FAILURE() << done.ToString();
          }
        }
      }));
    }
  }
  Status PutBatch(uint64_t begin, uint64_t version) {
    OneShot puts(store_->client());
    for (uint64_t n = begin; n < begin + kBatch; ++n) puts.Put(table_, KeyOf(n), ValueOf(n, version));
    RetryOptions options;
    options.transaction.durability = Durability::kBuffered;
    options.timeout = seconds(120);
    return RunOneShot(puts, options).status();
  }
  Status ReadBatch(const std::vector<uint64_t>& keys) {
    OneShot reads(store_->client());
    for (const uint64_t n : keys) reads.Get(table_, KeyOf(n));
    RetryOptions options;
    options.timeout = seconds(120);
    const Result<CommitAnswer> done = RunOneShot(reads, options);
    if (!done.ok()) return done.status();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (reads.result(i).records.empty()) return DEUT_ERROR(kCorruption, "record ", keys[i], " is missing");
    }
    return Status::Ok();
  }

  testing::TempDir dir_;
  std::unique_ptr<Embedded> store_;
  TableId table_;
  std::atomic<bool> failed_{false};
};

TEST_F(MemoryBudgetTest, ABudgetOfAFewBytesIsRefused) {
  EmbeddedOptions options;
  options.data_dir = dir_.path();
  options.memory_bytes = 8;
  const Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options);
  EXPECT_EQ(opened.status(), ErrorCode::kInvalidArgument);
  EXPECT_NE(opened.status().message().find("--memory"), std::string_view::npos) << opened.status().ToString();
}

TEST_F(MemoryBudgetTest, AnEmptyStoreTakesLittle) {
  const uint64_t before = ResidentBytes();
  Open(std::nullopt);
  const uint64_t taken = ResidentBytes() - before;
  std::printf("an empty store takes %llu MiB\n", static_cast<unsigned long long>(taken / kMiB));
  EXPECT_LE(taken, 64 * kMiB);
}

TEST_F(MemoryBudgetTest, TheProcessStaysWithinTheBudgetAndATwentieth) {
  const uint64_t budget = FromEnvironment("DEUT_MEMORY_MIB", 256) * kMiB;
  const uint64_t records = FromEnvironment("DEUT_DATA_MIB", 512) * kMiB / kValueBytes / kBatch * kBatch;
  const auto within = [budget](const char* phase) {
    const uint64_t peak = testing::PeakResidentBytes(getpid());
    std::printf("%-8s resident at most %llu MiB\n", phase, static_cast<unsigned long long>(peak / kMiB));
    EXPECT_LE(peak, budget + budget / 20) << phase;
  };
  Open(budget);
  OnThreads(records, [this](uint64_t at) { return PutBatch(at, 1); });
  within("load");
  EXPECT_GT(Counter("pages_swapped_out"), 0u);
  // A few keys are read over and over, each in a page of its own, beside others that are read once.
  OnThreads(200 * kBatch, [&](uint64_t at) {
    Random random(at + 1);
    std::vector<uint64_t> keys;
    for (uint64_t n = 0; n < kBatch; ++n)
      keys.push_back(n % 4 == 0 ? random.Below(records) : random.Below(kHotKeys) * (records / kHotKeys));
    return ReadBatch(keys);
  });
  within("read");
  EXPECT_GT(Counter("read_cache.bytes"), 0u) << "data is larger than memory, so records are cached";
  EXPECT_GT(Counter("reads.from_cache"), 0u);
  OnThreads(records / 4, [this](uint64_t at) { return PutBatch(at, 2); });
  within("update");
}

}  // namespace
}  // namespace deut
