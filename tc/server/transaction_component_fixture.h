// TransactionComponentTest: a whole TC over a disk in memory and a DC of the test. For tests. One thread, except where a
// test starts more.
#ifndef TC_SERVER_TRANSACTION_COMPONENT_FIXTURE_H_
#define TC_SERVER_TRANSACTION_COMPONENT_FIXTURE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/server/transaction_component.h"

namespace deut::tc {

constexpr Duration kPatience = seconds(20);

inline ::testing::AssertionResult IsOk(const Status& status) {
  return status.ok() ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << status.ToString();
}

#define ASSERT_OK(expression) ASSERT_TRUE(IsOk(expression))

// A DC whose list of tables takes a while, or is refused, when the test says so.
class SlowlyListingDc : public FakeDataComponent {
 public:
  using FakeDataComponent::FakeDataComponent;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override {
    if (on_tables) on_tables(deadline);
    asked.fetch_add(1);
    if (const ErrorCode code = refuse_with.load(); code != ErrorCode::kOk) return Status(code, "no tables for you");
    return FakeDataComponent::Tables(sender, deadline);
  }
  std::function<void(Deadline)> on_tables;
  std::atomic<ErrorCode> refuse_with{ErrorCode::kOk};
  std::atomic<int> asked{0};
};

class TransactionComponentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    storage_ = NewMemoryStorage(runtime_);
    dc_.Start();
    StartTc();
    Result<TableId> table = tc_->CreateTable("t", {}, Soon());
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
  }

  void TearDown() override {
    session_.reset();
    tc_.reset();
  }

  Deadline Soon() { return runtime_.Now() + kPatience; }

  TransactionComponentOptions Options() {
    TransactionComponentOptions options;
    options.log.directory = "/tc";
    options.log.ring_bytes = 4 << 20;
    options.log.segment_bytes = 4 << 20;
    options.log.max_record_bytes = 1 << 20;
    options.log.space_reserve_bytes = 256 << 10;
    options.log.chunk_bytes = 256 << 10;
    options.memory.log2_record_buckets = 8;
    options.ranges.period = milliseconds(5);
    options.ranges.records_per_range = 50;
    options.outcomes.log_bytes = 8 << 20;
    options.dc_link.redo_start_period = milliseconds(10);
    options.on_refused = [this](const Status&) { refused_.fetch_add(1); };
    return options;
  }

  void StartTc() {
    Result<std::unique_ptr<TransactionComponent>> opened =
        TransactionComponent::Open(Options(), runtime_, *storage_, dc_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    tc_ = *std::move(opened);
    if (!wait_serving_) return;
    ASSERT_OK(tc_->WaitServing(Soon()));
    session_ = *tc_->NewSession(Soon());
  }

  void RestartTc() {
    session_.reset();
    tc_.reset();
    StartTc();
  }

  static Operation Put(TableId table, std::string_view key, std::string_view value) {
    Operation operation;
    operation.kind = OperationKind::kPut;
    operation.table = table;
    operation.key = key;
    operation.value = value;
    return operation;
  }

  Status OneShot(const std::vector<Operation>& operations, std::vector<OperationResult>* results) {
    return session_->ExecuteOneShot({}, operations, results, Soon()).status();
  }
  Status PutOne(std::string_view key, std::string_view value) {
    std::vector<OperationResult> results;
    return OneShot({Put(table_, key, value)}, &results);
  }

  // Returns all records, read by scans of `limit` in the given direction.
  std::vector<std::pair<std::string, std::string>> ScanAll(Direction direction, uint32_t limit,
                                                           TransactionSession& session) {
    std::vector<std::pair<std::string, std::string>> records;
    std::string low, high;
    Result<Timestamp> begun = session.Begin({}, Soon());
    EXPECT_TRUE(begun.ok()) << begun.status().ToString();
    for (;;) {
      Operation scan;
      scan.kind = OperationKind::kScan;
      scan.table = table_;
      scan.low = low;
      scan.high = high;
      scan.direction = direction;
      scan.limit_records = limit;
      std::vector<OperationResult> results;
      const Status status = session.Execute({&scan, 1}, &results, Soon());
      EXPECT_TRUE(status.ok()) << status.ToString();
      if (!status.ok() || !results[0].status.ok()) return records;
      for (RecordBatch::Iterator it(results[0].records); it.Valid(); it.Next()) {
        records.emplace_back(it.record().key, it.record().value);
      }
      if (results[0].complete) break;
      (direction == Direction::kAscending ? low : high) = results[0].resume;
    }
    EXPECT_TRUE(session.Commit(Soon()).ok());
    return records;
  }

  uint64_t StatusValue(std::string_view name) {
    const Result<ServiceStatus> status = tc_->GetStatus(Soon());
    EXPECT_TRUE(status.ok());
    for (const CounterValue& counter : status->tc) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  Runtime& runtime_ = RealRuntime();
  SlowlyListingDc dc_{runtime_, DcId{7}};
  std::atomic<int> refused_{0};
  bool wait_serving_ = true;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<TransactionComponent> tc_;
  std::unique_ptr<TransactionSession> session_;
  TableId table_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_TRANSACTION_COMPONENT_FIXTURE_H_
