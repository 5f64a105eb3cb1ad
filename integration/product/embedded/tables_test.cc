// Tables that are created and dropped: ids do not run out, the store keeps nothing of dropped tables, and a drop that
// loses against an open writer fails at once.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/compression.h"
#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "integration/product/embedded/embedded.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

constexpr uint64_t kThreads = 4;

// DEUT_TABLES sets the number of tables.
uint64_t Tables() {
  const char* const given = std::getenv("DEUT_TABLES");
  return given == nullptr ? 100'000 : std::strtoull(given, nullptr, 10);
}

class TablesTest : public ::testing::Test {
 protected:
  void Open(EmbeddedOptions options = {}) {
    options.data_dir = "/store";
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options, RealRuntime(), *storage_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
  }

  uint64_t Counter(std::string_view name) {
    const Result<ServiceStatus> status = store_->service().GetStatus(RealRuntime().Now() + seconds(30));
    if (status.ok()) {
      for (const auto* counters : {&status->tc, &status->dc}) {
        for (const CounterValue& counter : *counters) {
          if (counter.name == name) return counter.value;
        }
      }
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  // Creates and drops this many tables, and writes a record into every 16th of them.
  void CreateAndDrop(uint64_t tables) {
    std::atomic<uint64_t> left{tables};
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t number = 0; number < kThreads; ++number) {
      threads.push_back(RealRuntime().StartThread("tables", [&, number] {
        const std::string name = Concat("passing-", number);
        for (;;) {
          const uint64_t mine = left.fetch_sub(1);
          if (mine == 0 || mine > tables) {
            left.store(0);
            return;
          }
          const Result<TableId> table = store_->client().CreateTable(name);
          ASSERT_TRUE(table.ok()) << table.status().ToString();
          if (mine % 16 == 0) {
            Transaction transaction = *store_->client().Begin();
            ASSERT_TRUE(transaction.Put(*table, "k", "v").ok());
            ASSERT_TRUE(transaction.Commit().ok());
          }
          const Status dropped = store_->client().DropTable(name);
          ASSERT_TRUE(dropped.ok()) << dropped.ToString();
        }
      }));
    }
    threads.clear();
  }

  void WaitFreed() {
    const MonotonicTime patience = RealRuntime().Now() + seconds(60);
    while (Counter("tables.being_freed") != 0 || Counter("tables") != 1) {
      ASSERT_LT(RealRuntime().Now(), patience) << Counter("tables.being_freed") << " tables are not freed";
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
    }
  }

  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<Embedded> store_;
};

// From the client through the redo log to the pages on disk, also after a restart.
TEST_F(TablesTest, TheCompressionThatAClientChoosesReachesTheDisk) {
  EmbeddedOptions options;
  options.dc.checkpoints.interval = milliseconds(20);
  for (int life = 0; life < 2; ++life) {
    ASSERT_NO_FATAL_FAILURE(Open(options));
    const Result<TableId> table = life == 0 ? store_->client().CreateTable("small", {.compression = Compression::kZstd})
                                            : store_->client().OpenTable("small");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    const Status put = RunTransaction(store_->client(), {}, [&](Transaction& t) {
      for (int i = 0; i < 500; ++i) {
        DEUT_RETURN_IF_ERROR(t.Put(*table, Concat("key ", i), std::string(100, static_cast<char>('a' + life))));
      }
      return Status::Ok();
    });
    ASSERT_TRUE(put.ok()) << put.ToString();
    const MonotonicTime patience = RealRuntime().Now() + seconds(60);
    while (Counter("compressed_bytes_before") == 0) {
      ASSERT_LT(RealRuntime().Now(), patience) << "no page was compressed";
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
    }
    EXPECT_LT(Counter("compressed_bytes_after"), Counter("compressed_bytes_before") / 2);
    store_.reset();
  }
}

TEST_F(TablesTest, MoreTablesThanSixteenBitsCountLeaveNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const TableId kept = *store_->client().CreateTable("kept");
  CreateAndDrop(Tables() / 20);
  ASSERT_NO_FATAL_FAILURE(WaitFreed());
  const uint64_t memory = Counter("memory_bytes");
  CreateAndDrop(Tables() - Tables() / 20);
  ASSERT_NO_FATAL_FAILURE(WaitFreed());
  EXPECT_LE(Counter("memory_bytes"), memory + 16 * Tables() + (8 << 20)) << "of the data component";
  const Result<TableId> last = store_->client().CreateTable("last");
  ASSERT_TRUE(last.ok()) << last.status().ToString();
  EXPECT_GT(last->value, Tables());
  // T1: after a restart, ids continue above the last one.
  store_.reset();
  ASSERT_NO_FATAL_FAILURE(Open());
  const Result<TableId> next = store_->client().CreateTable("next");
  ASSERT_TRUE(next.ok()) << next.status().ToString();
  EXPECT_GT(next->value, last->value);
  EXPECT_EQ(*store_->client().OpenTable("kept"), kept);
}

// The writer came first: the drop loses at once, and its error names the writer.
TEST_F(TablesTest, ADropBesideAnOpenWriterFailsAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const TableId table = *store_->client().CreateTable("t");
  Transaction writer = *store_->client().Begin();
  ASSERT_TRUE(writer.Put(table, "k", "v").ok());
  const MonotonicTime begin = RealRuntime().Now();
  const Status dropped = store_->client().DropTable("t", {.timeout = seconds(20)});
  EXPECT_LT(RealRuntime().Now() - begin, seconds(5));
  EXPECT_EQ(dropped, ErrorCode::kAborted) << dropped.ToString();
  ASSERT_NE(dropped.abort(), nullptr);
  EXPECT_EQ(dropped.abort()->other_timestamp, writer.timestamp().value);
  EXPECT_TRUE(writer.Commit().ok());
  EXPECT_TRUE(store_->client().DropTable("t", {.timeout = seconds(20)}).ok());
}

}  // namespace
}  // namespace deut
