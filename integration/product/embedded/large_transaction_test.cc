// One transaction with very many updates commits in chunks under one commit record, while other transactions commit.
// Afterwards all of its updates are visible, or none. DEUT_UPDATES sets the number; the long run uses a million.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"
#include "integration/product/embedded/embedded.h"

namespace deut {
namespace {

constexpr uint64_t kInOneMessage = 500;

uint64_t Updates() {
  const char* const given = std::getenv("DEUT_UPDATES");
  return given == nullptr ? 50'000 : std::strtoull(given, nullptr, 10);
}

class LargeTransactionTest : public ::testing::Test {
 protected:
  void Open() {
    EmbeddedOptions options;
    options.data_dir = dir_.path();
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
    const Result<TableId> table =
        life_++ == 0 ? store_->client().CreateTable("large") : store_->client().OpenTable("large");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
  }

  static std::string Key(uint64_t i) { return Concat("key", 10'000'000 + i); }
  static std::string Value(uint64_t i, std::string_view round) {
    return Concat(round, "-", i * 7919, std::string(40, '.'));
  }

  // Writes the keys in scattered order, so that the write set is not in key order.
  Status PutAll(Transaction& transaction, std::string_view round) {
    uint64_t step = 7919;
    while (updates_ % step == 0) step += 2;
    std::vector<std::string> keys(kInOneMessage), values(kInOneMessage);
    std::vector<Operation> operations;
    std::vector<OperationResult> results;
    for (uint64_t n = 0; n < updates_; n += operations.size()) {
      operations.clear();
      for (uint64_t i = n; i < std::min(n + kInOneMessage, updates_); ++i) {
        const uint64_t which = i * step % updates_;
        keys[i - n] = Key(which);
        values[i - n] = Value(which, round);
        Operation put;
        put.kind = OperationKind::kPut;
        put.table = table_;
        put.key = keys[i - n];
        put.value = values[i - n];
        operations.push_back(put);
      }
      DEUT_RETURN_IF_ERROR(transaction.Execute(operations, &results));
    }
    return Status::Ok();
  }

  // Expects, by one scan, that every key has its value of `round`; with an empty `round`, that the table has no
  // record.
  void ExpectAll(std::string_view round) {
    Transaction transaction = *store_->client().Begin();
    Scanner scanner = transaction.OpenScanner(table_, {});
    uint64_t seen = 0;
    while (scanner.Next()) {
      ASSERT_EQ(scanner.key(), Key(seen));
      ASSERT_EQ(scanner.value(), Value(seen, round)) << scanner.key();
      ++seen;
    }
    ASSERT_TRUE(scanner.status().ok()) << scanner.status().ToString();
    EXPECT_EQ(seen, round.empty() ? 0 : updates_);
  }

  const uint64_t updates_ = Updates();
  testing::TempDir dir_;
  std::unique_ptr<Embedded> store_;
  TableId table_;
  int life_ = 0;
};

TEST_F(LargeTransactionTest, AllOrNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  {
    Transaction transaction = *store_->client().Begin();
    ASSERT_TRUE(PutAll(transaction, "given up").ok());
    ASSERT_TRUE(transaction.Abort().ok());
  }
  ASSERT_NO_FATAL_FAILURE(ExpectAll(""));

  // Another thread commits to another table meanwhile.
  const Result<TableId> other = store_->client().CreateTable("other");
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> others{0};
  std::string failure;
  auto writer = RealRuntime().StartThread("writer", [&] {
    while (!stop.load() && failure.empty()) {
      Transaction transaction = *store_->client().Begin();
      Status written = transaction.Put(*other, std::to_string(others.load() % 100), "x");
      if (written.ok()) written = transaction.Commit().status();
      if (!written.ok()) failure = written.ToString();
      others.fetch_add(1);
    }
  });
  {
    Transaction transaction = *store_->client().Begin();
    Status put = PutAll(transaction, "first");
    ASSERT_TRUE(put.ok()) << put.ToString();
    const uint64_t before = others.load();
    while (others.load() < before + 5 && failure.empty()) RealRuntime().Yield();
    const Result<CommitAnswer> committed = transaction.Commit();
    ASSERT_TRUE(committed.ok()) << committed.status().ToString();
  }
  stop.store(true);
  writer->Join();
  EXPECT_EQ(failure, "");
  ASSERT_NO_FATAL_FAILURE(ExpectAll("first"));

  // The DC restarts while the TC ships the updates to it; then the whole store restarts.
  {
    Transaction transaction = *store_->client().Begin();
    const Status put = PutAll(transaction, "second");
    ASSERT_TRUE(put.ok()) << put.ToString();
    const Result<CommitAnswer> committed = transaction.Commit();
    ASSERT_TRUE(committed.ok()) << committed.status().ToString();
  }
  const Status restarted = store_->RestartDc();
  ASSERT_TRUE(restarted.ok()) << restarted.ToString();
  ASSERT_NO_FATAL_FAILURE(ExpectAll("second"));
  store_.reset();
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectAll("second"));
  ASSERT_TRUE(store_->client().DropCaches().ok());
  ASSERT_NO_FATAL_FAILURE(ExpectAll("second"));
}

}  // namespace
}  // namespace deut
