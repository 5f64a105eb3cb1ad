#include "tc/client/scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "tc/client/client.h"
#include "tc/client/fake_transaction_service.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::IsEmpty;
using testing::JumpingRuntime;

class ScannerTest : public ::testing::Test {
 protected:
  ScannerTest() {
    for (const char* key : {"a", "b", "c", "d", "e"}) service_.Poke(table_, key, std::string(1, key[0] - 'a' + 'A'));
  }

  static std::vector<std::string> Keys(Scanner& scanner) {
    std::vector<std::string> keys;
    while (scanner.Next()) keys.emplace_back(scanner.key());
    EXPECT_TRUE(scanner.status().ok()) << scanner.status().ToString();
    return keys;
  }
  static std::vector<std::string> Keys(const RecordBatch& records) {
    std::vector<std::string> keys;
    for (RecordBatch::Iterator it(records); it.Valid(); it.Next()) keys.emplace_back(it.record().key);
    return keys;
  }

  JumpingRuntime runtime_;
  FakeTransactionService service_{runtime_};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {.runtime = &runtime_});
  TableId table_ = client_->CreateTable("t").value();
  Transaction reader_ = client_->Begin().value();
};

TEST_F(ScannerTest, BothDirectionsWithBounds) {
  service_.max_batch_records = 2;
  Scanner up = reader_.OpenScanner(table_, {.low = "b", .high = "e"});
  EXPECT_THAT(Keys(up), ElementsAre("b", "c", "d"));
  EXPECT_TRUE(up.complete());
  EXPECT_FALSE(up.Next()) << "stays at the end";
  Scanner down = reader_.OpenScanner(table_, {.low = "b", .high = "e", .direction = Direction::kDescending});
  EXPECT_THAT(Keys(down), ElementsAre("d", "c", "b"));
  EXPECT_TRUE(down.complete());
  Scanner all = reader_.OpenScanner(table_, {.direction = Direction::kDescending});
  EXPECT_THAT(Keys(all), ElementsAre("e", "d", "c", "b", "a"));
  Scanner none = reader_.OpenScanner(table_, {.low = "b1", .high = "b2"});
  EXPECT_THAT(Keys(none), IsEmpty());
  EXPECT_TRUE(none.complete());
}

// A scanner's memory goes to the next scanner when it has ended, and not before.
TEST_F(ScannerTest, ScannersBesideAndBehindOneAnotherShowTheirOwnRecords) {
  service_.max_batch_records = 2;
  for (int transaction = 0; transaction < 3; ++transaction) {
    Scanner first = reader_.OpenScanner(table_, {.low = "b"});
    ASSERT_TRUE(first.Next());
    Scanner second = reader_.OpenScanner(table_, {.low = "d"});
    ASSERT_TRUE(second.Next());
    EXPECT_EQ(first.key(), "b");
    EXPECT_EQ(second.value(), "D");
    EXPECT_THAT(Keys(first), ElementsAre("c", "d", "e"));
    Scanner third = reader_.OpenScanner(table_, {.low = "a", .high = "c"});
    ASSERT_TRUE(third.Next());
    EXPECT_EQ(second.key(), "d");
    EXPECT_THAT(Keys(second), ElementsAre("e"));
    EXPECT_EQ(third.key(), "a");
    ASSERT_TRUE(reader_.Commit().ok());
    EXPECT_EQ(third.value(), "A") << "good until the next call";
    reader_ = client_->Begin().value();
  }
}

TEST_F(ScannerTest, SeesOwnWritesOfTheTransaction) {
  ASSERT_TRUE(reader_.Put(table_, "bb", "new").ok());
  ASSERT_TRUE(reader_.Remove(table_, "c").ok());
  ASSERT_TRUE(reader_.Put(table_, "d", "changed").ok());
  Scanner scanner = reader_.OpenScanner(table_, {.low = "b"});
  EXPECT_THAT(Keys(scanner), ElementsAre("b", "bb", "d", "e"));
  Scanner down = reader_.OpenScanner(table_, {.low = "b", .direction = Direction::kDescending});
  EXPECT_THAT(Keys(down), ElementsAre("e", "d", "bb", "b"));
}

TEST_F(ScannerTest, LimitOfRecordsAndResume) {
  service_.max_batch_records = 2;
  ScanOptions options{.limit_records = 3};
  Scanner first = reader_.OpenScanner(table_, options);
  EXPECT_THAT(Keys(first), ElementsAre("a", "b", "c"));
  ASSERT_FALSE(first.complete());
  options.ResumeAt(first.resume());
  Scanner second = reader_.OpenScanner(table_, options);
  EXPECT_THAT(Keys(second), ElementsAre("d", "e"));
  EXPECT_TRUE(second.complete());

  options = {.direction = Direction::kDescending, .limit_records = 3};
  Scanner third = reader_.OpenScanner(table_, options);
  EXPECT_THAT(Keys(third), ElementsAre("e", "d", "c"));
  ASSERT_FALSE(third.complete());
  options.ResumeAt(third.resume());
  Scanner fourth = reader_.OpenScanner(table_, options);
  EXPECT_THAT(Keys(fourth), ElementsAre("b", "a"));
}

TEST_F(ScannerTest, ResumesFromTheMiddleOfABatch) {
  Scanner up = reader_.OpenScanner(table_, {});
  ASSERT_TRUE(up.Next());
  ASSERT_TRUE(up.Next());
  EXPECT_FALSE(up.complete());
  ScanOptions rest;
  rest.ResumeAt(up.resume());
  Scanner after = reader_.OpenScanner(table_, rest);
  EXPECT_THAT(Keys(after), ElementsAre("c", "d", "e"));

  Scanner down = reader_.OpenScanner(table_, {.direction = Direction::kDescending});
  ASSERT_TRUE(down.Next());
  rest = {.direction = Direction::kDescending};
  rest.ResumeAt(down.resume());
  Scanner below = reader_.OpenScanner(table_, rest);
  EXPECT_THAT(Keys(below), ElementsAre("d", "c", "b", "a"));
}

TEST_F(ScannerTest, LimitOfBytes) {
  Scanner scanner = reader_.OpenScanner(table_, {.limit_bytes = 3, .batch_bytes = 1});
  EXPECT_THAT(Keys(scanner), ElementsAre("a", "b"))
      << "each record has two bytes: the limit is reached within the second";
  EXPECT_EQ(scanner.resume(), "c");
}

TEST_F(ScannerTest, ScanIntoMemory) {
  service_.max_batch_records = 2;
  ScanResult all = reader_.Scan(table_, {}).value();
  EXPECT_THAT(Keys(all.records), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_TRUE(all.complete);
  ScanResult some = reader_.Scan(table_, {.low = "b", .limit_records = 3}).value();
  EXPECT_THAT(Keys(some.records), ElementsAre("b", "c", "d"));
  EXPECT_FALSE(some.complete);
  EXPECT_EQ(some.resume, "e");
  EXPECT_TRUE(reader_.Commit().ok());
}

TEST_F(ScannerTest, ScanIntoMemoryIsBounded) {
  const std::string big(1 << 20, 'x');
  for (int i = 0; i < 8; ++i) service_.Poke(table_, "k" + std::to_string(i), big);
  const ScanResult result = reader_.Scan(table_, {.low = "k"}).value();
  EXPECT_FALSE(result.complete);
  EXPECT_LE(result.records.size(), 5u);
  EXPECT_GE(result.records.size(), 4u);
}

TEST_F(ScannerTest, AFailureEndsItAndIsKept) {
  service_.max_batch_records = 2;
  Scanner scanner = reader_.OpenScanner(table_, {});
  ASSERT_TRUE(scanner.Next());
  ASSERT_TRUE(scanner.Next());
  service_.on_call = [](FakeCall call, Deadline) {
    if (call != FakeCall::kExecute) return FakeFault{};
    return FakeFault{Status::Aborted({.reason = AbortReason::kRangeWriter, .key = {}}, "lost")};
  };
  EXPECT_FALSE(scanner.Next());
  EXPECT_EQ(scanner.status().code(), ErrorCode::kAborted);
  EXPECT_FALSE(scanner.Next());
  EXPECT_FALSE(scanner.complete());
  EXPECT_FALSE(reader_.open());
}

TEST_F(ScannerTest, AfterItsTransactionEndedItSaysSo) {
  Scanner scanner = reader_.OpenScanner(table_, {});
  ASSERT_TRUE(reader_.Commit().ok());
  EXPECT_FALSE(scanner.Next());
  EXPECT_EQ(scanner.status().code(), ErrorCode::kWrongState);
}

TEST_F(ScannerTest, UnknownTable) {
  Scanner scanner = reader_.OpenScanner(TableId(77), {});
  EXPECT_FALSE(scanner.Next());
  EXPECT_EQ(scanner.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(reader_.open());
}

// Random bounds, limits, directions and batch sizes. The pieces, joined by resume keys, are compared with a sorted
// set.
TEST_F(ScannerTest, PiecesMakeTheWhole) {
  const uint64_t seed = 20'261'121;
  SCOPED_TRACE(seed);
  Random random(seed);
  std::set<std::string> model{"a", "b", "c", "d", "e"};
  for (int i = 0; i < 300; ++i) {
    const std::string key = std::to_string(random.Below(100'000));
    model.insert(key);
    service_.Poke(table_, key, "v");
  }
  for (int round = 0; round < 300; ++round) {
    std::string low = random.OneIn(4) ? "" : std::to_string(random.Below(100'000));
    std::string high = random.OneIn(4) ? "" : std::to_string(random.Below(100'000));
    if (!high.empty() && high < low) std::swap(low, high);
    const bool ascending = random.OneIn(2);
    service_.max_batch_records = static_cast<uint32_t>(random.Between(1, 40));
    ScanOptions options{.low = low,
                        .high = high,
                        .direction = ascending ? Direction::kAscending : Direction::kDescending,
                        .limit_records = random.Between(0, 60),
                        .limit_bytes = random.OneIn(2) ? 0 : random.Between(1, 300)};
    std::vector<std::string> want;
    for (const std::string& key : model) {
      if (key >= low && (high.empty() || key < high)) want.push_back(key);
    }
    if (!ascending) std::reverse(want.begin(), want.end());
    std::vector<std::string> got;
    for (bool complete = false; !complete;) {
      Scanner scanner = reader_.OpenScanner(table_, options);
      uint64_t take = random.OneIn(3) ? random.Between(1, 20) : 1'000'000;
      while (take-- > 0 && scanner.Next()) got.emplace_back(scanner.key());
      ASSERT_TRUE(scanner.status().ok());
      complete = scanner.complete();
      if (!complete) options.ResumeAt(scanner.resume());
    }
    ASSERT_EQ(got, want) << "round " << round;
  }
}

TEST(KeyAfter, IsTheNextBound) {
  EXPECT_EQ(KeyAfter("a"), std::string("a\0", 2));
  EXPECT_GT(KeyAfter("a"), "a");
  EXPECT_LT(KeyAfter("a"), std::string("a\0\0", 3));
}

class FetchAheadTest : public ScannerTest {
 protected:
  FetchAheadTest() {
    service_.sends_ahead = true;
    service_.max_batch_records = 1;
  }
};

TEST_F(FetchAheadTest, BothWaysAndWithoutIt) {
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    Scanner with = reader_.OpenScanner(table_, {.direction = direction});
    const std::vector<std::string> keys = Keys(with);
    EXPECT_TRUE(with.complete());
    const int sent = service_.sent_ahead;
    EXPECT_GE(sent, 3);
    Scanner without = reader_.OpenScanner(table_, {.direction = direction, .fetch_ahead = false});
    EXPECT_EQ(Keys(without), keys);
    Scanner large = reader_.OpenScanner(table_, {.direction = direction, .batch_bytes = kMaxBatchAhead + 1});
    EXPECT_EQ(Keys(large), keys);
    EXPECT_EQ(service_.sent_ahead, sent);
    service_.sent_ahead = 0;
  }
}

TEST_F(FetchAheadTest, ScansOfTwoBatchesOrToTheirLimitFetchNothingInVain) {
  Scanner two = reader_.OpenScanner(table_, {.limit_records = 2});
  EXPECT_THAT(Keys(two), ElementsAre("a", "b"));
  EXPECT_EQ(service_.sent_ahead, 0);
  Scanner four = reader_.OpenScanner(table_, {.limit_records = 4});
  EXPECT_THAT(Keys(four), ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(service_.sent_ahead, 2);
}

TEST_F(FetchAheadTest, OperationsBetweenTheBatches) {
  Scanner one = reader_.OpenScanner(table_, {}),
          two = reader_.OpenScanner(table_, {.direction = Direction::kDescending});
  std::vector<std::string> up, down;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(one.Next() && two.Next());
    up.emplace_back(one.key());
    down.emplace_back(two.key());
    EXPECT_TRUE(reader_.Put(table_, "z" + std::to_string(i), "1").ok());
    EXPECT_EQ(reader_.Get(table_, "a").value(), "A");
  }
  EXPECT_THAT(up, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(down, ElementsAre("e", "d", "c", "b", "a"));
  EXPECT_TRUE(reader_.Commit().ok());
  EXPECT_EQ(service_.transactions_open(), 0);
}

// A scan that is given up with a batch in flight does not stand in the way of others.
TEST_F(FetchAheadTest, AScanThatIsGivenUp) {
  {
    Scanner scanner = reader_.OpenScanner(table_, {});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(scanner.Next());
    EXPECT_EQ(service_.sent_ahead, 2);
  }
  service_.sent_ahead = 0;
  for (int i = 0; i < 3; ++i) {
    Scanner again = reader_.OpenScanner(table_, {});
    EXPECT_THAT(Keys(again), ElementsAre("a", "b", "c", "d", "e"));
  }
  EXPECT_GE(service_.sent_ahead, 3) << "the place is free again after a while";
  Transaction other = client_->Begin().value();
  Scanner scanner = other.OpenScanner(table_, {});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(scanner.Next());
  EXPECT_TRUE(other.Abort().ok());
  EXPECT_EQ(service_.transactions_open(), 1);
  EXPECT_TRUE(reader_.Commit().ok());
  EXPECT_EQ(service_.transactions_open(), 0);
}

// A conflict met ahead is a conflict only if the scan gets there. Then the batch is asked for again, and decided.
TEST_F(FetchAheadTest, AConflictAhead) {
  enum class Then : uint8_t { kCommit, kAbort, kGoOn, kComeThere };
  for (const Then then : {Then::kCommit, Then::kAbort, Then::kGoOn, Then::kComeThere}) {
    Transaction t = client_->Begin().value();
    const int open = service_.transactions_open();
    Scanner scanner = t.OpenScanner(table_, {});
    ASSERT_TRUE(scanner.Next());
    int calls = 0;
    const int losses = then == Then::kComeThere ? 2 : 1;
    service_.on_call = [&](FakeCall call, Deadline) {
      if (call == FakeCall::kExecute) ++calls;
      const bool lost = call == FakeCall::kExecute && calls >= 2 && calls < 2 + losses;
      return lost ? FakeFault{.status = Status::Aborted({.reason = AbortReason::kRangeWriter}, "lost")} : FakeFault{};
    };
    ASSERT_TRUE(scanner.Next()) << "the second batch; the third is sent for, and loses";
    EXPECT_EQ(calls, 2);
    EXPECT_TRUE(t.open());
    switch (then) {
      case Then::kCommit:
        EXPECT_TRUE(t.Commit().ok());
        EXPECT_EQ(calls, 2);
        break;
      case Then::kAbort:
        EXPECT_TRUE(t.Abort().ok());
        break;
      case Then::kGoOn:
        EXPECT_TRUE(scanner.Next());
        EXPECT_EQ(scanner.key(), "c");
        EXPECT_THAT(Keys(scanner), ElementsAre("d", "e"));
        EXPECT_TRUE(t.Commit().ok());
        break;
      case Then::kComeThere:
        EXPECT_FALSE(scanner.Next());
        EXPECT_EQ(scanner.status().code(), ErrorCode::kAborted);
        EXPECT_FALSE(t.open());
        EXPECT_EQ(t.status().abort()->reason, AbortReason::kRangeWriter);
        break;
    }
    EXPECT_EQ(service_.transactions_open(), open - 1);
    service_.on_call = nullptr;
  }
}

// An abort with a batch in flight has happened when the call returns, and the session is reused. If the batch does
// not come the session is closed.
TEST_F(FetchAheadTest, AbortWithABatchOnItsWay) {
  for (const bool lost : {false, true}) {
    Transaction t = client_->Begin().value();
    const int open = service_.transactions_open(), sessions = service_.sessions_open();
    EXPECT_TRUE(t.Put(table_, "z", "1").ok());
    Scanner scanner = t.OpenScanner(table_, {});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(scanner.Next());
    service_.loses_ahead = lost;
    EXPECT_TRUE(t.Abort().ok());
    EXPECT_FALSE(t.open());
    EXPECT_EQ(service_.transactions_open(), open - 1);
    EXPECT_EQ(service_.sessions_open(), lost ? sessions - 1 : sessions);
    EXPECT_EQ(t.Put(table_, "z", "1").code(), ErrorCode::kWrongState);
    EXPECT_EQ(service_.Peek(table_, "z"), std::nullopt);
  }
}

// An abort does not wait for the batch beyond the deadline of the whole transaction.
TEST_F(FetchAheadTest, AnAbortKeepsToTheTransactionsTime) {
  const Deadline limit = RealRuntime().Now() + milliseconds(100);
  Transaction t = client_->BeginUntil({}, limit, nullptr).value();
  Scanner scanner = t.OpenScanner(table_, {});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(scanner.Next());
  service_.loses_ahead = true;
  EXPECT_TRUE(t.Abort().ok());
  EXPECT_LE(service_.await_pipelined_deadline.load(), limit);
}

}  // namespace
}  // namespace deut
