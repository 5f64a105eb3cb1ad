// One transaction fills a table of its own while clients read cold keys of another table. The transaction must commit
// at the first attempt (R6: what a bucket of the record table remembers of a read concerns only the key that was
// read).
//
// The test spreads the clients' reads evenly over the transaction, so the speed of the threads does not matter.
// DEUT_BULK_KEYS, DEUT_BULK_READS and DEUT_BULK_RUNS set the sizes. The long form writes a million keys beside 2,000
// reads a second for a minute, and repeats that a hundred times with the default budget (integration/README.md).
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "integration/product/embedded/embedded.h"

namespace deut {
namespace {

constexpr int kClients = 4;
constexpr uint64_t kInOneMessage = 500;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

class BulkBesideReadersTest : public ::testing::Test {
 protected:
  void Open() {
    EmbeddedOptions options;
    options.data_dir = "store";
    // This budget gives the record table few buckets: 2^18.
    options.tc.memory.version_budget_bytes = FromEnvironment("DEUT_BULK_BUDGET", uint64_t{64} << 20);
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options, RealRuntime(), *storage_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
  }

  // Commits the keys that the clients will read, and drops the caches: nothing has read these keys, and the TC holds
  // nothing for them.
  void LoadColdKeys(TableId table) {
    for (uint64_t key = 0; key < reads_;) {
      Transaction load = *store_->client().Begin();
      for (uint64_t n = 0; n < kInOneMessage && key < reads_; ++n, ++key)
        ASSERT_TRUE(load.Put(table, Concat("cold", key), "value").ok());
      const Result<CommitAnswer> committed = load.Commit();
      ASSERT_TRUE(committed.ok()) << committed.status().ToString();
    }
    const Status dropped = store_->client().DropCaches();
    ASSERT_TRUE(dropped.ok()) << dropped.ToString();
  }

  // Sends one message after the other. Each waits until the clients have read the same share of their keys as the
  // bulk writer has written of its own.
  Status PutAll(Transaction& bulk, TableId table, std::atomic<uint64_t>* allowed, const std::atomic<uint64_t>& read) {
    std::vector<std::string> keys(kInOneMessage);
    std::vector<Operation> operations;
    std::vector<OperationResult> results;
    for (uint64_t n = 0; n < keys_; n += operations.size()) {
      operations.clear();
      for (uint64_t i = n; i < std::min(n + kInOneMessage, keys_); ++i) {
        keys[i - n] = Concat("key", i);
        Operation put;
        put.kind = OperationKind::kPut;
        put.table = table;
        put.key = keys[i - n];
        put.value = "value";
        operations.push_back(put);
      }
      DEUT_RETURN_IF_ERROR(bulk.Execute(operations, &results));
      const uint64_t due = n * reads_ / keys_;
      allowed->store(due);
      while (read.load() < due) RealRuntime().Yield();
    }
    return Status::Ok();
  }

  const uint64_t keys_ = FromEnvironment("DEUT_BULK_KEYS", 100'000);
  const uint64_t reads_ = FromEnvironment("DEUT_BULK_READS", 8'000);
  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<Embedded> store_;
};

// By the arithmetic in record_table.h, one run in ten thousand loses: the tags of two keys collide with probability
// 2^-24.
TEST_F(BulkBesideReadersTest, ATransactionThatFillsItsOwnTableCommitsAtTheFirstAttempt) {
  const uint64_t runs = FromEnvironment("DEUT_BULK_RUNS", 1);
  ASSERT_NO_FATAL_FAILURE(Open());
  const TableId cold = *store_->client().CreateTable("cold");
  ASSERT_NO_FATAL_FAILURE(LoadColdKeys(cold));
  uint64_t committed = 0;
  for (uint64_t run = 0; run < runs; ++run) {
    const TableId own = *store_->client().CreateTable(Concat("own", run));
    Transaction bulk = *store_->client().Begin();
    std::atomic<uint64_t> allowed{0}, taken{0}, read{0};
    std::atomic<bool> over{false};
    std::vector<std::unique_ptr<Thread>> clients;
    for (int client = 0; client < kClients; ++client) {
      clients.push_back(RealRuntime().StartThread("client", [&] {
        for (;;) {
          const uint64_t mine = taken.fetch_add(1);
          while (mine >= allowed.load()) {
            if (over.load()) return;
            RealRuntime().Yield();
          }
          Transaction reader = *store_->client().Begin();
          const Result<std::optional<std::string>> value = reader.Get(cold, Concat("cold", mine));
          EXPECT_TRUE(value.ok()) << value.status().ToString();
          EXPECT_TRUE(reader.Commit().ok());
          read.fetch_add(1);
        }
      }));
    }
    Status put = PutAll(bulk, own, &allowed, read);
    if (put.ok()) put = bulk.Commit().status();
    over.store(true);
    clients.clear();
    if (put.ok()) EXPECT_GT(read.load(), 0u);
    if (put.ok()) ++committed;
    EXPECT_TRUE(put.ok() || runs > 1) << put.ToString();
    Transaction look = *store_->client().Begin();
    const Result<std::optional<std::string>> last = look.Get(own, Concat("key", keys_ - 1));
    ASSERT_TRUE(last.ok()) << last.status().ToString();
    EXPECT_EQ(last->has_value(), put.ok());
  }
  EXPECT_GE(committed * 100, runs * 99) << committed << " of " << runs << " runs committed at the first attempt";
}

}  // namespace
}  // namespace deut
