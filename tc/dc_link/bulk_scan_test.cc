#include "tc/dc_link/bulk_scan.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "tc/dc_link/change_word.h"
#include "tc/dc_link/dc_gate.h"
#include "tc/dc_link/fake_data_component.h"

namespace deut::tc {
namespace {

constexpr TableId kTable{7};

std::string KeyOf(int i) { return absl::StrCat("key", 1000 + i); }

// A gate and a DC that holds key1000 .. key1199. The test acts as the link's thread.
class BulkScanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dc_.Start();
    Connect();
    gate_.SetStartTarget(Position{});
    Load(0, 200);
    dc_.MakeStable();
  }
  void TearDown() override {
    stream_.reset();
    gate_.Stop();
  }

  class Listener final : public ApplyLogListener {
   public:
    explicit Listener(DcGate& gate) : gate_(gate) {}
    void OnAck(const ApplyAck& ack) override { gate_.OnAck(ack); }
    void OnClosed(const Status&) override {}

   private:
    DcGate& gate_;
  };

  void Connect() {
    stream_.reset();
    Result<HelloAnswer> hello =
        dc_.Hello(HelloRequest{kProtocolVersion, sender_.tc, sender_.epoch, sender_.nonce}, kNoDeadline);
    ASSERT_TRUE(hello.ok());
    gate_.StartSession(*hello);
    Sender sender = sender_;
    sender.incarnation = hello->incarnation;
    auto stream = dc_.OpenApplyLog(sender, &listener_, kNoDeadline);
    ASSERT_TRUE(stream.ok());
    stream_ = std::move(*stream);
  }

  void Load(int first, int count) {
    LogBatch batch;
    batch.from = gate_.applied();
    batch.to = Position{Lsn{batch.from.commit.value + 10}, UINT32_MAX};
    for (int i = 0; i < count; ++i) {
      LogEntryView entry;
      entry.position = Position{batch.to.commit, static_cast<uint32_t>(i + 1)};
      entry.timestamp = Timestamp{batch.to.commit.value};
      entry.table = kTable;
      const std::string key = KeyOf(first + i);
      entry.key = key;
      entry.value = "a value of some bytes";
      batch.Append(entry);
    }
    gate_.RaiseEverSent(batch.to);
    ASSERT_TRUE(stream_->Send(batch, kNoDeadline).ok());
    const Deadline deadline = RealRuntime().Now() + seconds(20);
    while (gate_.applied() < batch.to) {
      ASSERT_LT(RealRuntime().Now(), deadline);
      RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(100));
    }
  }

  std::unique_ptr<BulkScan> Scan(Direction direction, std::string low = "", std::string high = "") {
    ScanSpec spec;
    spec.table = kTable;
    spec.range = KeyRange{std::move(low), std::move(high)};
    spec.direction = direction;
    spec.batch_bytes = 400;  // about ten records
    auto scan = std::make_unique<BulkScan>(dc_, gate_, sender_, spec);
    EXPECT_TRUE(scan->Open(Soon()).ok());
    return scan;
  }

  Deadline Soon() { return RealRuntime().Now() + seconds(20); }

  // Takes batches until the scan is complete or its coverage reaches `bound`; calls `between` before each.
  template <typename F>
  std::vector<std::string> Drain(BulkScan& scan, const std::string& bound, F between) {
    std::vector<std::string> keys;
    for (int n = 0;; ++n) {
      between(n);
      ScanBatch batch;
      const Status status = scan.Next(&batch, Soon());
      EXPECT_TRUE(status.ok()) << status.ToString();
      if (!status.ok()) return keys;
      for (RecordBatch::Iterator it(batch.records); it.Valid(); it.Next()) keys.emplace_back(it.record().key);
      if (batch.complete || (!bound.empty() && batch.covered == bound)) return keys;
    }
  }

  std::vector<std::string> Keys(int first, int last) {
    std::vector<std::string> keys;
    for (int i = first; i != last; i += first < last ? 1 : -1) keys.push_back(KeyOf(i));
    return keys;
  }

  const Sender sender_{TcId{1}, TcEpoch{4}, 99, DcIncarnation{0}};
  FakeDataComponent dc_{RealRuntime(), DcId{3}};
  ChangeWord changes_{RealRuntime()};
  DcGate gate_{RealRuntime(), changes_, "the DC", nullptr};
  Listener listener_{gate_};
  std::unique_ptr<ApplyLogStream> stream_;
};

TEST_F(BulkScanTest, DeliversTheRangeInBothDirections) {
  const auto nothing = [](int) {};
  auto up = Scan(Direction::kAscending);
  ASSERT_TRUE(up->Grant("", 1 << 20).ok());
  EXPECT_EQ(Drain(*up, "", nothing), Keys(0, 200));
  auto down = Scan(Direction::kDescending, KeyOf(50), KeyOf(150));
  ASSERT_TRUE(down->Grant("", 1 << 20).ok());
  EXPECT_EQ(Drain(*down, "", nothing), Keys(149, 49));
}

// X3: each batch meets another incarnation of the DC. No key is missed and none comes twice.
TEST_F(BulkScanTest, ResumesAtTheResumeKeyInTheNextIncarnation) {
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    auto scan = Scan(direction);
    ASSERT_TRUE(scan->Grant("", 1 << 20).ok());
    const auto restart = [&](int n) {
      if (n % 3 != 1) return;
      dc_.Restart();
      Connect();
    };
    EXPECT_EQ(Drain(*scan, "", restart), direction == Direction::kAscending ? Keys(0, 200) : Keys(199, -1));
    EXPECT_GT(gate_.state().incarnations, 3u);
  }
}

// Keys that are not granted are not read, also after a restart. A new record below the bound is seen, one beyond it
// only by a later grant (S4).
TEST_F(BulkScanTest, ReadsOnlyInsideTheGrantAlsoAfterARestart) {
  auto scan = Scan(Direction::kAscending);
  ASSERT_TRUE(scan->Grant(KeyOf(30), 1 << 20).ok());
  const auto restart_once = [&](int n) {
    if (n != 1) return;
    dc_.Restart();
    Connect();
  };
  EXPECT_EQ(Drain(*scan, KeyOf(30), restart_once), Keys(0, 30));
  ScanBatch batch;
  ASSERT_TRUE(scan->Next(&batch, Soon()).ok());
  EXPECT_TRUE(batch.records.empty());
  EXPECT_EQ(batch.covered, KeyOf(30));
  ASSERT_TRUE(scan->Grant("", 1 << 20).ok());
  EXPECT_EQ(Drain(*scan, "", [](int) {}), Keys(30, 200));
}

TEST_F(BulkScanTest, BytesThatWereDeliveredAreNotGrantedAgain) {
  auto scan = Scan(Direction::kAscending);
  ASSERT_TRUE(scan->Grant("", 1000).ok());
  size_t delivered = 0;
  ScanBatch batch;
  for (int n = 0;; ++n) {
    const Status status = scan->Next(&batch, RealRuntime().Now() + milliseconds(20));
    if (!status.ok()) {
      EXPECT_EQ(status.code(), ErrorCode::kDeadlineExceeded);
      break;
    }
    delivered += batch.records.bytes().size();
    if (n == 0) {
      dc_.Restart();
      Connect();
    }
  }
  EXPECT_GE(delivered, 1000u);
  EXPECT_LT(delivered, 1100u);
}

// The gate is closed while the next incarnation has not caught up. The scan waits, and resumes when it opens.
TEST_F(BulkScanTest, WaitsBehindTheGate) {
  auto scan = Scan(Direction::kAscending);
  ASSERT_TRUE(scan->Grant("", 1 << 20).ok());
  gate_.RaiseEverSent(Position{Lsn{1000}, UINT32_MAX});
  dc_.Restart();
  Connect();
  ScanBatch batch;
  const Status status = scan->Next(&batch, RealRuntime().Now() + milliseconds(10));
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << status.ToString();
  EXPECT_NE(status.message().find("of 1000/end"), std::string_view::npos) << status.ToString();
  ApplyAck ack;
  ack.incarnation = dc_.incarnation();
  ack.applied = Position{Lsn{1000}, UINT32_MAX};
  gate_.OnAck(ack);
  EXPECT_EQ(Drain(*scan, "", [](int) {}), Keys(0, 200));
}

TEST_F(BulkScanTest, FencedIsFinal) {
  auto scan = Scan(Direction::kAscending);
  ASSERT_TRUE(scan->Grant("", 1 << 20).ok());
  gate_.Fail(DEUT_ERROR(kFenced, "another TC"));
  dc_.Restart();
  ScanBatch batch;
  EXPECT_EQ(scan->Next(&batch, kNoDeadline).code(), ErrorCode::kFenced);
}

// A DC, and a network, that end streams of scans and nothing else.
class CuttingDc final : public DataComponent {
 public:
  explicit CuttingDc(FakeDataComponent& dc) : dc_(dc) {}

  // Batches that a stream delivers before the network ends it.
  int batches_a_stream = 1;
  // Streams that can still be opened.
  int streams_left = 1000;
  int opened = 0;

  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override {
    if (streams_left-- == 0) return Cut();
    DEUT_ASSIGN_OR_RETURN(std::unique_ptr<ScanStream> inner, dc_.OpenScan(sender, spec, deadline));
    ++opened;
    return std::unique_ptr<ScanStream>(new Scan(std::move(inner), batches_a_stream));
  }
  Result<HelloAnswer> Hello(const HelloRequest&, Deadline) override { return Cut(); }
  void Submit(absl::Span<DataRequest* const>) override {}
  void Abandon(DataRequest*) override {}
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender&, ApplyLogListener*, Deadline) override {
    return Cut();
  }
  Result<std::vector<std::string>> Partition(const Sender&, TableId, uint32_t, Deadline) override { return Cut(); }
  Result<std::vector<TableInfo>> Tables(const Sender&, Deadline) override { return Cut(); }
  Result<std::vector<CounterValue>> Counters(Deadline) override { return Cut(); }

 private:
  class Scan final : public ScanStream {
   public:
    Scan(std::unique_ptr<ScanStream> inner, int batches) : inner_(std::move(inner)), left_(batches) {}
    Status Grant(std::string_view bound, uint64_t bytes) override { return inner_->Grant(bound, bytes); }
    Status Next(ScanBatch* batch, Deadline deadline) override {
      return left_-- == 0 ? Cut() : inner_->Next(batch, deadline);
    }

   private:
    const std::unique_ptr<ScanStream> inner_;
    int left_;
  };
  static Status Cut() { return DEUT_ERROR(kUnavailable, "the stream was ended"); }

  FakeDataComponent& dc_;
};

// Other readers go on: the gate stays open, in the same session.
TEST_F(BulkScanTest, AStreamThatIsCutOffClosesTheGateToNobody) {
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    CuttingDc dc(dc_);
    ScanSpec spec{.table = kTable, .range = {}, .direction = direction, .batch_bytes = 400};
    const DcGate::Pass before = gate_.pass();
    BulkScan scan(dc, gate_, sender_, spec);
    ASSERT_TRUE(scan.Open(Soon()).ok());
    ASSERT_TRUE(scan.Grant("", 1 << 20).ok());
    const auto still_open = [&](int) { EXPECT_EQ(gate_.pass(), before); };
    EXPECT_EQ(Drain(scan, "", still_open), direction == Direction::kAscending ? Keys(0, 200) : Keys(199, -1));
    EXPECT_EQ(gate_.pass(), before);
    EXPECT_GT(dc.opened, 10);
  }
}

// Nor if the DC takes no log at the same time, as it does when it is short of threads: it still answers.
TEST_F(BulkScanTest, AStreamThatIsCutOffWhileNothingIsShippedClosesTheGateToNobody) {
  const DcGate::Pass before = gate_.pass();
  gate_.StreamEnded(before.session, DEUT_ERROR(kResourceExhausted, "no thread for a stream"));
  ASSERT_EQ(gate_.pass(), before);
  CuttingDc dc(dc_);
  BulkScan scan(dc, gate_, sender_, {.table = kTable, .range = {}, .batch_bytes = 400});
  ASSERT_TRUE(scan.Open(Soon()).ok());
  ASSERT_TRUE(scan.Grant("", 1 << 20).ok());
  EXPECT_EQ(Drain(scan, "", [](int) {}), Keys(0, 200));
  EXPECT_EQ(gate_.pass(), before);
  EXPECT_GT(dc.opened, 10);
}

// If no stream can be opened any more, or none delivers anything, the connection counts as lost.
TEST_F(BulkScanTest, StreamsThatBreakAgainAndAgainAreALoss) {
  for (const bool opens : {false, true}) {
    Connect();
    ASSERT_TRUE(gate_.pass().open());
    CuttingDc dc(dc_);
    ScanSpec spec{.table = kTable, .range = {}, .direction = Direction::kAscending, .batch_bytes = 400};
    BulkScan scan(dc, gate_, sender_, spec);
    ASSERT_TRUE(scan.Open(Soon()).ok());
    ASSERT_TRUE(scan.Grant("", 1 << 20).ok());
    ScanBatch batch;
    ASSERT_TRUE(scan.Next(&batch, Soon()).ok());
    if (opens) {
      dc.batches_a_stream = 0;
    } else {
      dc.streams_left = 0;
    }
    const Status status = scan.Next(&batch, RealRuntime().Now() + milliseconds(10));
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << status.ToString();
    EXPECT_FALSE(gate_.pass().open());
    // Behind the gate the scan continues where it was.
    dc.batches_a_stream = 1;
    dc.streams_left = 1000;
    Connect();
    EXPECT_EQ(Drain(scan, "", [](int) {}).size() + batch.records.size(), 200u);
  }
}

// A DC that covers less than before, or more than was granted, would make the merge lose keys.
class LyingScan final : public ScanStream {
 public:
  explicit LyingScan(ScanBatch batch) : batch_(std::move(batch)) {}
  Status Grant(std::string_view, uint64_t) override { return Status::Ok(); }
  Status Next(ScanBatch* batch, Deadline) override {
    *batch = batch_;
    return Status::Ok();
  }

 private:
  ScanBatch batch_;
};

class LyingDc final : public DataComponent {
 public:
  ScanBatch batch;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender&, const ScanSpec&, Deadline) override {
    return std::unique_ptr<ScanStream>(new LyingScan(batch));
  }
  Result<HelloAnswer> Hello(const HelloRequest&, Deadline) override { return HelloAnswer{}; }
  void Submit(absl::Span<DataRequest* const>) override {}
  void Abandon(DataRequest*) override {}
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender&, ApplyLogListener*, Deadline) override {
    return Unused();
  }
  Result<std::vector<std::string>> Partition(const Sender&, TableId, uint32_t, Deadline) override { return Unused(); }
  Result<std::vector<TableInfo>> Tables(const Sender&, Deadline) override { return Unused(); }
  Result<std::vector<CounterValue>> Counters(Deadline) override { return Unused(); }

 private:
  static Status Unused() { return DEUT_ERROR(kInternal, "not used here"); }
};

TEST_F(BulkScanTest, ABatchThatCoversTheWrongIntervalIsCorruption) {
  LyingDc liar;
  const auto verdict = [&](Direction direction, const std::string& bound, bool complete, std::string covered) {
    ScanSpec spec;
    spec.range = KeyRange{"d", "m"};
    spec.direction = direction;
    liar.batch.complete = complete;
    liar.batch.covered = std::move(covered);
    BulkScan scan(liar, gate_, sender_, spec);
    EXPECT_TRUE(scan.Grant(bound, 1000).ok());
    ScanBatch batch;
    return scan.Next(&batch, Soon()).code();
  };
  const Direction up = Direction::kAscending, down = Direction::kDescending;
  EXPECT_EQ(verdict(up, "h", false, "f"), ErrorCode::kOk);
  EXPECT_EQ(verdict(up, "h", false, "h"), ErrorCode::kOk);
  EXPECT_EQ(verdict(up, "h", false, "i"), ErrorCode::kCorruption);
  EXPECT_EQ(verdict(up, "h", false, "c"), ErrorCode::kCorruption);
  EXPECT_EQ(verdict(up, "h", false, ""), ErrorCode::kCorruption);
  EXPECT_EQ(verdict(up, "h", true, ""), ErrorCode::kCorruption);
  EXPECT_EQ(verdict(up, "m", true, ""), ErrorCode::kOk);
  EXPECT_EQ(verdict(up, "", true, ""), ErrorCode::kOk);
  EXPECT_EQ(verdict(down, "h", false, "i"), ErrorCode::kOk);
  EXPECT_EQ(verdict(down, "h", false, "h"), ErrorCode::kOk);
  EXPECT_EQ(verdict(down, "h", false, "g"), ErrorCode::kCorruption);
  EXPECT_EQ(verdict(down, "h", false, "n"), ErrorCode::kCorruption);
  EXPECT_EQ(verdict(down, "h", true, ""), ErrorCode::kCorruption);
  EXPECT_EQ(verdict(down, "d", true, ""), ErrorCode::kOk);
  // Records that were delivered before.
  liar.batch.records.Append("c", "v", Version());
  EXPECT_EQ(verdict(up, "h", false, "f"), ErrorCode::kCorruption);
  EXPECT_EQ(verdict(down, "d", true, ""), ErrorCode::kOk);
  liar.batch.records.Clear();
  liar.batch.records.Append("m", "v", Version());
  EXPECT_EQ(verdict(down, "h", false, "i"), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace deut::tc
