// A whole TC whose versions do not fit their budget (S9). An old reader reads its values while far more is written
// than there is room for; the DC is away; the TC is restarted; its disk is full; and the reader is aborted, where
// that is configured.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/server/transaction_component.h"

namespace deut::tc {
namespace {

constexpr uint64_t kBudget = 2 << 20;
constexpr size_t kValueBytes = 64 << 10;
constexpr int kKeys = 1600;  // 100 MiB of values

std::string Key(int i) { return Concat("k", 10000 + i); }
std::string Value(int key, int generation) {
  std::string value = Concat(key, ":", generation, ":");
  value.resize(kValueBytes, static_cast<char>('a' + (key + generation) % 26));
  return value;
}

class OverBudgetTest : public ::testing::Test {
 protected:
  void Start(OverBudgetPolicy policy) {
    storage_ = disk_.Mount();
    TransactionComponentOptions options;
    options.log.directory = "/tc";
    options.log.ring_bytes = 4 << 20;
    options.log.segment_bytes = 4 << 20;
    options.log.max_record_bytes = 1 << 20;
    options.log.space_reserve_bytes = 256 << 10;
    options.log.chunk_bytes = 256 << 10;
    options.outcomes.log_bytes = 0;
    options.memory.version_budget_bytes = kBudget;
    options.memory.over_budget = policy;
    options.dc_link.redo_start_period = milliseconds(10);
    options.spill.slow_after = spill_slow_after_;
    Result<std::unique_ptr<TransactionComponent>> opened =
        TransactionComponent::Open(options, RealRuntime(), *storage_, dc_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    tc_ = *std::move(opened);
    const Status serving = tc_->WaitServing(Soon());
    ASSERT_TRUE(serving.ok()) << serving.ToString();
    session_ = *tc_->NewSession(Soon());
  }
  void Begin(OverBudgetPolicy policy) {
    dc_.Start();
    Start(policy);
    Result<TableId> table = tc_->CreateTable("t", {}, Soon());
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
  }
  void TearDown() override {
    session_.reset();
    tc_.reset();
  }
  static void Pause(Duration duration) { RealRuntime().SleepUntil(RealRuntime().Now() + duration); }
  static Deadline Soon() { return RealRuntime().Now() + seconds(60); }

  static Operation Op(OperationKind kind, TableId table, std::string_view key, std::string_view value = {}) {
    Operation operation;
    operation.kind = kind;
    operation.table = table;
    operation.key = key;
    operation.value = value;
    return operation;
  }
  // Retries as a client's retry helper does.
  Status Put(std::string_view key, std::string_view value) {
    const Deadline end = Soon();
    TransactionOptions options;
    options.durability = Durability::kBuffered;
    for (;;) {
      std::vector<OperationResult> results;
      const Operation put = Op(OperationKind::kPut, table_, key, value);
      const Status status = session_->ExecuteOneShot(options, {&put, 1}, &results, Soon()).status();
      if (status != ErrorCode::kResourceExhausted || RealRuntime().Now() >= end) return status;
      Pause(milliseconds(1));
    }
  }
  void PutAll(int generation) {
    for (int i = 0; i < kKeys; ++i) {
      const Status put = Put(Key(i), Value(i, generation));
      ASSERT_TRUE(put.ok()) << put.ToString();
    }
  }
  // Returns the value, "-" if there is none, or the status.
  std::string Get(TransactionSession& session, std::string_view key) {
    std::vector<OperationResult> results;
    const Operation get = Op(OperationKind::kGet, table_, key);
    const Status status = session.Execute({&get, 1}, &results, Soon());
    if (!status.ok()) return status.ToString();
    RecordBatch::Iterator it(results[0].records);
    return it.Valid() ? std::string(it.record().value) : "-";
  }
  std::unique_ptr<TransactionSession> Reader() {
    std::unique_ptr<TransactionSession> session = *tc_->NewSession(Soon());
    EXPECT_TRUE(session->Begin(TransactionOptions{}, Soon()).ok());
    return session;
  }
  uint64_t Figure(std::string_view name) {
    const Result<ServiceStatus> status = tc_->GetStatus(Soon());
    for (const CounterValue& counter : status->tc) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no figure " << name;
    return 0;
  }
  // Expects a new transaction to read this generation.
  void ExpectGeneration(TransactionSession& session, int generation, int step = 29) {
    for (int i = 0; i < kKeys; i += step)
      ASSERT_TRUE(Get(session, Key(i)) == (generation < 0 ? "-" : Value(i, generation))) << i;
  }

  Duration spill_slow_after_ = seconds(5);
  FaultyDisk disk_{RealRuntime(), 1};
  FakeDataComponent dc_{RealRuntime(), DcId(7)};
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<TransactionComponent> tc_;
  std::unique_ptr<TransactionSession> session_;
  TableId table_;
};

TEST_F(OverBudgetTest, AnOldReaderReadsWhileFiftyTimesTheBudgetIsWritten) {
  Begin(OverBudgetPolicy::kRefuse);
  const std::unique_ptr<TransactionSession> old = Reader();
  EXPECT_EQ(Get(*old, Key(0)), "-");
  std::atomic<bool> stop{false};
  std::thread reading([&] {
    while (!stop.load()) ExpectGeneration(*old, -1, 83);
  });
  PutAll(1);
  stop.store(true);
  reading.join();
  EXPECT_LE(Figure("versions.bytes"), kBudget + kBudget / 4);
  EXPECT_GT(Figure("versions.paged_out_bytes"), uint64_t{kKeys} * kValueBytes / 2);
  EXPECT_GT(Figure("versions.held_back_bytes"), 0u);
  const std::unique_ptr<TransactionSession> later = Reader();
  ExpectGeneration(*later, 1);
  ExpectGeneration(*old, -1);
  EXPECT_GT(Figure("reads.from_log"), 0u);
  EXPECT_TRUE(old->Commit(Soon()).ok());
  EXPECT_TRUE(later->Commit(Soon()).ok());
  // All of it is applied now, and read from the DC.
  ASSERT_TRUE(tc_->DropCaches(Soon()).ok());
  EXPECT_LE(Figure("versions.bytes"), kBudget / 16);
  ExpectGeneration(*Reader(), 1);
}

TEST_F(OverBudgetTest, TheDcAwayAndTheTcStartedAgain) {
  Begin(OverBudgetPolicy::kRefuse);
  dc_.HoldApply(true);
  PutAll(1);
  {
    const std::unique_ptr<TransactionSession> reader = Reader();
    ExpectGeneration(*reader, 1);
    EXPECT_GT(Figure("reads.from_log"), 0u);
  }
  // The DC is restarted, with nothing; then the TC is restarted as well.
  dc_.Kill();
  dc_.HoldApply(false);
  session_.reset();
  tc_.reset();
  dc_.Start();
  Start(OverBudgetPolicy::kRefuse);
  ExpectGeneration(*Reader(), 1);
}

TEST_F(OverBudgetTest, AFullDiskStopsWritersNotReaders) {
  Begin(OverBudgetPolicy::kRefuse);
  const std::unique_ptr<TransactionSession> old = Reader();
  EXPECT_EQ(Get(*old, Key(0)), "-");
  disk_.SetFreeBytes(40 << 20);
  int written = 0;
  for (; written < kKeys; ++written) {
    std::vector<OperationResult> results;
    const std::string key = Key(written), value = Value(written, 1);
    const Operation put = Op(OperationKind::kPut, table_, key, value);
    const Status status = session_->ExecuteOneShot({}, {&put, 1}, &results, Soon()).status();
    if (status == ErrorCode::kResourceExhausted && status.message().find("disk") != std::string_view::npos) break;
    if (status == ErrorCode::kResourceExhausted) {  // the budget, or the next segment is not allocated yet
      Pause(milliseconds(1));
      --written;
      continue;
    }
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  ASSERT_LT(written, kKeys);
  ASSERT_GT(written, 100);
  const std::unique_ptr<TransactionSession> reader = Reader();
  for (int i = 0; i < written; i += 31) ASSERT_TRUE(Get(*reader, Key(i)) == Value(i, 1)) << i;
  EXPECT_GT(Figure("reads.from_log"), 0u);
  EXPECT_EQ(Get(*old, Key(0)), "-");
  disk_.SetFreeBytes(uint64_t{1} << 40);
  EXPECT_TRUE(Put("more", "1").ok());
}

// There are far more keys than fit into memory, so keys leave memory as well.
TEST_F(OverBudgetTest, SmallValuesAreSpilled) {
  constexpr int kSmall = 30'000;
  Begin(OverBudgetPolicy::kAbortReader);
  const std::unique_ptr<TransactionSession> old = Reader();
  EXPECT_EQ(Get(*old, Key(0)), "-");
  for (int i = 0; i < kSmall; ++i) ASSERT_TRUE(Put(Key(i), "small").ok());
  EXPECT_GT(Figure("versions.spilled"), uint64_t{kSmall} / 3);
  EXPECT_GT(Figure("versions.spilled_bytes_written"), uint64_t{kSmall} / 4 * 41);  // 41 bytes of a version and its key
  EXPECT_GT(Figure("versions.spilled_memory_bytes"), 0u);
  EXPECT_EQ(Figure("transactions.aborted.over-budget"), 0u);
  const std::unique_ptr<TransactionSession> later = Reader();
  for (int i = 0; i < kSmall; i += 997) {
    EXPECT_EQ(Get(*later, Key(i)), "small");
    EXPECT_EQ(Get(*old, Key(i)), "-");
  }
  EXPECT_TRUE(old->Commit(Soon()).ok());
  EXPECT_TRUE(later->Commit(Soon()).ok());
  ASSERT_TRUE(tc_->DropCaches(Soon()).ok());
  EXPECT_EQ(Figure("versions.spilled_now"), 0u);
  EXPECT_EQ(Get(*Reader(), Key(kSmall - 1)), "small");
}

// The collector waits for the disk of the spilled files. The status shows that, and no other thread waits for the
// disk: writers are refused when the budget is full.
TEST_F(OverBudgetTest, ADiskOfSpilledFilesThatHangsIsToldAndHoldsUpNobody) {
  spill_slow_after_ = milliseconds(20);
  Begin(OverBudgetPolicy::kRefuse);
  const std::unique_ptr<TransactionSession> old = Reader();
  EXPECT_EQ(Get(*old, Key(0)), "-");
  EXPECT_EQ(Figure("versions.spill_waiting_operations"), 0u);
  disk_.HoldOperations(kDiskWrite, "spill-");
  int written = 0;
  const auto write_until_the_budget_is_full = [&] {
    TransactionOptions buffered;
    buffered.durability = Durability::kBuffered;
    for (;;) {
      std::vector<OperationResult> results;
      const std::string key = Key(written);
      const Operation put = Op(OperationKind::kPut, table_, key, "small");
      const Status status = session_->ExecuteOneShot(buffered, {&put, 1}, &results, Soon()).status();
      if (status.message().find("--version_budget") != std::string_view::npos) return;
      ASSERT_TRUE(status.ok() || status == ErrorCode::kResourceExhausted) << status.ToString();  // a segment is not
                                                                                                 // allocated yet
      if (status.ok()) ++written;
    }
  };
  // A writer that outruns the collector fills the budget with versions that leave memory without a spill.
  for (write_until_the_budget_is_full(); disk_.held_operations() == 0; write_until_the_budget_is_full()) {
    ASSERT_FALSE(HasFailure());
    Pause(milliseconds(1));
  }
  while (Figure("versions.spill_waiting_ms") < 20) Pause(milliseconds(1));
  EXPECT_GE(Figure("versions.spill_waiting_operations"), 1u);
  EXPECT_GE(Figure("versions.spill_slow_operations"), 1u);
  const std::unique_ptr<TransactionSession> later = Reader();
  EXPECT_EQ(Get(*later, Key(written / 2)), "small");
  EXPECT_EQ(Get(*old, Key(written / 2)), "-");
  EXPECT_TRUE(later->Commit(Soon()).ok());
  EXPECT_TRUE(tc_->CreateTable("another", {}, Soon()).ok());
  EXPECT_TRUE(tc_->DropTable("another", Soon()).ok());
  write_until_the_budget_is_full();

  disk_.HoldOperations(0);
  ASSERT_TRUE(Put(Key(written), "small").ok());
  // On a busy machine an operation may be slow by itself.
  while (Figure("versions.spill_waiting_operations") != 0) Pause(milliseconds(1));
  EXPECT_GT(Figure("versions.spilled"), 0u);
  EXPECT_EQ(Figure("versions.failed_spills"), 0u);
  EXPECT_EQ(Get(*Reader(), Key(written)), "small");
}

// A process that was killed has left its runs. They fill the disk on which the next process's log wants a segment.
TEST_F(OverBudgetTest, ItStartsWhereSpilledFilesFillTheDisk) {
  {
    const std::unique_ptr<Storage> storage = disk_.Mount();
    ASSERT_TRUE(storage->CreateDirectory("/tc/spill").ok());
    Result<std::unique_ptr<File>> file = storage->Open("/tc/spill/spill-1", {.create = true, .writable = true});
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    const std::string bytes = "SPB1" + std::string(32 << 20, 'x');
    ASSERT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
  }
  disk_.SetFreeBytes(1 << 20);
  Begin(OverBudgetPolicy::kRefuse);
  ASSERT_TRUE(Put(Key(0), "small").ok());
  EXPECT_EQ(*storage_->List("/tc/spill"), (std::vector<std::string>{"LOCK", "OWNER"}));
}

// Nothing can be spilled here, so small values fill the budget.
class AbortReaderTest : public OverBudgetTest, public ::testing::WithParamInterface<Isolation> {
 protected:
  AbortReaderTest() {
    disk_.AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskChanging, .path_contains = "spill-"});
  }
};

TEST_P(AbortReaderTest, TheOldestReaderIsAbortedWhenItFillsTheBudget) {
  Begin(OverBudgetPolicy::kAbortReader);
  std::unique_ptr<TransactionSession> old = *tc_->NewSession(Soon());
  TransactionOptions options;
  options.isolation = GetParam();
  ASSERT_TRUE(old->Begin(options, Soon()).ok());
  EXPECT_EQ(Get(*old, Key(0)), "-");
  int written = 0;
  const Deadline end = Soon();
  while (Figure("transactions.aborted.over-budget") == 0 && RealRuntime().Now() < end) {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put(Key(written++), "small").ok());
  }
  EXPECT_GT(static_cast<uint64_t>(written) * 50, kBudget / 16);
  std::vector<OperationResult> results;
  const std::string key = Key(0);
  const Operation get = Op(OperationKind::kGet, table_, key);
  const Status aborted = old->Execute({&get, 1}, &results, Soon());
  ASSERT_NE(aborted.abort(), nullptr) << aborted.ToString();
  EXPECT_EQ(aborted.abort()->reason, AbortReason::kOverBudget);
  EXPECT_NE(aborted.message().find(Concat(kBudget)), std::string_view::npos) << aborted.ToString();
  // The updates that it held back are applied.
  ASSERT_TRUE(tc_->DropCaches(Soon()).ok());
  EXPECT_LE(Figure("versions.bytes"), kBudget / 16);
}

// A reader that is never idle is aborted between two operations.
TEST_P(AbortReaderTest, AlsoWhoIsBusy) {
  Begin(OverBudgetPolicy::kAbortReader);
  std::unique_ptr<TransactionSession> old = *tc_->NewSession(Soon());
  TransactionOptions options;
  options.isolation = GetParam();
  ASSERT_TRUE(old->Begin(options, Soon()).ok());
  std::atomic<bool> aborted{false};
  std::thread reading([&] {
    const std::vector<Operation> gets(8, Op(OperationKind::kScan, table_, {}));
    const Deadline end = Soon();
    while (RealRuntime().Now() < end) {
      std::vector<OperationResult> results;
      const Status status = old->Execute(gets, &results, Soon());
      if (status.ok()) continue;
      ASSERT_NE(status.abort(), nullptr) << status.ToString();
      ASSERT_EQ(status.abort()->reason, AbortReason::kOverBudget);
      aborted.store(true);
      return;
    }
  });
  for (int i = 0; !aborted.load() && i < 1'000'000; ++i) ASSERT_TRUE(Put(Key(i), "small").ok());
  reading.join();
  EXPECT_TRUE(aborted.load());
}

// The DC holds everything back, so no reader is aborted.
TEST_P(AbortReaderTest, NobodyIsAbortedForADcThatIsAway) {
  Begin(OverBudgetPolicy::kAbortReader);
  dc_.HoldApply(true);
  std::vector<OperationResult> results;
  int written = 0;
  for (;; ++written) {
    const std::string key = Key(written);
    const Operation put = Op(OperationKind::kPut, table_, key, "small");
    const Status status = session_->ExecuteOneShot({}, {&put, 1}, &results, Soon()).status();
    if (status == ErrorCode::kResourceExhausted && status.message().find("budget") != std::string_view::npos) break;
    ASSERT_TRUE(status.ok() || status == ErrorCode::kResourceExhausted) << status.ToString();
  }
  std::unique_ptr<TransactionSession> reader = *tc_->NewSession(Soon());
  TransactionOptions options;
  options.isolation = GetParam();
  ASSERT_TRUE(reader->Begin(options, Soon()).ok());
  // The reader has been the oldest for longer than needed, and the budget is full.
  const Deadline end = Soon();
  while (Figure("timestamp.held_back_ms") < 300 && RealRuntime().Now() < end) {
    const std::string key = Key(written++);
    const Operation put = Op(OperationKind::kPut, table_, key, "small");
    const Status status = session_->ExecuteOneShot({}, {&put, 1}, &results, Soon()).status();
    ASSERT_TRUE(status.ok() || status == ErrorCode::kResourceExhausted) << status.ToString();
  }
  EXPECT_EQ(Figure("transactions.aborted.over-budget"), 0u);
  dc_.HoldApply(false);
  EXPECT_TRUE(reader->Commit(Soon()).ok());
  EXPECT_TRUE(Put(Key(0), "small").ok());
}

// The same for a DC that is gone, though the reader is older than everything that waits. When the DC is back, the
// reader is in the way.
TEST_P(AbortReaderTest, NobodyIsAbortedForADcThatIsGone) {
  Begin(OverBudgetPolicy::kAbortReader);
  std::unique_ptr<TransactionSession> old = *tc_->NewSession(Soon());
  TransactionOptions options;
  options.isolation = GetParam();
  ASSERT_TRUE(old->Begin(options, Soon()).ok());
  dc_.Kill();
  std::vector<OperationResult> results;
  int written = 0;
  int refused = 0;
  const Deadline end = Soon();
  while ((refused == 0 || Figure("timestamp.held_back_ms") < 300) && RealRuntime().Now() < end) {
    const std::string key = Key(written++);
    const Operation put = Op(OperationKind::kPut, table_, key, "small");
    const Status status = session_->ExecuteOneShot({}, {&put, 1}, &results, Soon()).status();
    ASSERT_TRUE(status.ok() || status == ErrorCode::kResourceExhausted) << status.ToString();
    if (status == ErrorCode::kResourceExhausted && status.message().find("budget") != std::string_view::npos) ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(Figure("transactions.aborted.over-budget"), 0u);
  dc_.Start();
  const Deadline long_after = Soon();
  while (Figure("transactions.aborted.over-budget") == 0 && RealRuntime().Now() < long_after) {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put(Key(written++), "small").ok());
  }
  EXPECT_EQ(Figure("transactions.aborted.over-budget"), 1u);
}

INSTANTIATE_TEST_SUITE_P(Both, AbortReaderTest, ::testing::Values(Isolation::kSerializable, Isolation::kSnapshot),
                         [](const auto& info) {
                           return info.param == Isolation::kSnapshot ? "Snapshot" : "Transaction";
                         });

}  // namespace
}  // namespace deut::tc
