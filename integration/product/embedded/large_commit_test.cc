// A transaction with more bytes than the log keeps allocated. It either commits, or the write that passes
// --max_transaction_bytes is refused for good. DEUT_COMMIT_MIB sets the size; the long run uses 1 GiB with the
// default options.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"
#include "integration/product/embedded/embedded.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kValueBytes = 256 << 10;

uint64_t CommitBytes() {
  const char* const given = std::getenv("DEUT_COMMIT_MIB");
  return (given == nullptr ? 320 : std::strtoull(given, nullptr, 10)) * kMiB;
}

class LargeCommitTest : public ::testing::Test {
 protected:
  void Open() {
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
    const Result<TableId> table =
        life_++ == 0 ? store_->client().CreateTable("large") : store_->client().OpenTable("large");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
  }

  static std::string Key(uint64_t i) { return Concat("key", 10'000'000 + i); }
  static std::string Value(uint64_t i) {
    std::string value(kValueBytes, static_cast<char>('a' + i % 26));
    value.replace(0, 8, Concat(10'000'000 + i));
    return value;
  }
  Status PutAll(Transaction& transaction, uint64_t bytes) {
    for (uint64_t i = 0; i * kValueBytes < bytes; ++i) {
      DEUT_RETURN_IF_ERROR(transaction.Put(table_, Key(i), Value(i)));
    }
    return Status::Ok();
  }
  uint64_t Count() {
    Transaction transaction = *store_->client().Begin();
    Scanner scanner = transaction.OpenScanner(table_, {});
    uint64_t seen = 0;
    for (; scanner.Next(); ++seen) {
      EXPECT_EQ(scanner.key(), Key(seen));
      EXPECT_TRUE(scanner.value() == Value(seen)) << scanner.key();
    }
    EXPECT_TRUE(scanner.status().ok()) << scanner.status().ToString();
    return seen;
  }

  testing::TempDir dir_;
  EmbeddedOptions options_ = [this] {
    EmbeddedOptions options;
    options.data_dir = dir_.path();
    return options;
  }();
  std::unique_ptr<Embedded> store_;
  TableId table_;
  int life_ = 0;
};

TEST_F(LargeCommitTest, ACommitOfManySegmentsSucceedsAndOutlivesTheStore) {
  const uint64_t bytes = CommitBytes();
  ASSERT_NO_FATAL_FAILURE(Open());
  {
    Transaction transaction = *store_->client().Begin();
    const Status put = PutAll(transaction, bytes);
    ASSERT_TRUE(put.ok()) << put.ToString();
    const Result<CommitAnswer> committed = transaction.Commit();
    ASSERT_TRUE(committed.ok()) << committed.status().ToString();
  }
  EXPECT_EQ(Count(), bytes / kValueBytes);
  // Other transactions commit as before.
  const Status put = RunTransaction(store_->client(), {}, [&](Transaction& t) { return t.Put(table_, "a", "1"); });
  EXPECT_TRUE(put.ok()) << put.ToString();
  const Status removed = RunTransaction(store_->client(), {}, [&](Transaction& t) { return t.Remove(table_, "a"); });
  EXPECT_TRUE(removed.ok()) << removed.ToString();
  store_.reset();
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(Count(), bytes / kValueBytes);
}

TEST_F(LargeCommitTest, TheWriteThatPassesTheLimitIsRefusedForGood) {
  options_.tc.memory.max_transaction_bytes = 4 * kMiB;
  ASSERT_NO_FATAL_FAILURE(Open());
  RetryReport report;
  const Status refused =
      RunTransaction(store_->client(), {}, [&](Transaction& t) { return PutAll(t, 5 * kMiB); }, &report);
  EXPECT_EQ(refused, ErrorCode::kInvalidArgument) << refused.ToString();
  EXPECT_FALSE(IsRetryable(refused));
  EXPECT_NE(refused.message().find("--max_transaction_bytes"), std::string_view::npos) << refused.ToString();
  EXPECT_EQ(report.attempts, 1u);
  // A transaction within the limit commits, also after one of its writes was refused.
  Transaction transaction = *store_->client().Begin();
  ASSERT_TRUE(PutAll(transaction, 3 * kMiB).ok());
  EXPECT_EQ(transaction.Put(table_, "z", std::string(kMiB, 'z')), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(transaction.Commit().ok());
  EXPECT_EQ(Count(), 3 * kMiB / kValueBytes);
}

}  // namespace
}  // namespace deut
