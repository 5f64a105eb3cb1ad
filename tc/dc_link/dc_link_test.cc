// The link as the TC sees it, against a DC with several incarnations. Tests named after a rule fail when that rule's
// step is left out.
#include "tc/dc_link/dc_link.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/dc_link/link_fixture.h"
#include "tc/dc_link/link_harness.h"

namespace deut::tc {
namespace {

using ::testing::HasSubstr;

constexpr TableId kTable = LinkHarness::kTable;

class DcLinkTest : public LinkTest {};

TEST_F(DcLinkTest, ShipsWhatIsCommittedAndReadsItBack) {
  Begin();
  Position last;
  for (int i = 0; i < 500; ++i) last = h_.Commit({{absl::StrCat("k", i % 50), absl::StrCat("v", i)}});
  ASSERT_TRUE(h_.WaitApplied(last));
  EXPECT_EQ(Text(h_.Read("k7")), "v457");
  EXPECT_EQ(Text(h_.Read("nothing")), "(absent)");
  EXPECT_EQ(SeenUpdates().size(), 500u);
  const DcLinkStatus status = h_.link->status();
  EXPECT_TRUE(status.gate_open);
  EXPECT_EQ(status.peer.dc, DcId{3});
  EXPECT_EQ(status.peer.incarnation, h_.dc.incarnation());
  EXPECT_EQ(status.shipped.updates, 500u);
  EXPECT_LT(status.shipped.batches, 400u) << "commits are gathered into batches";
  EXPECT_GE(status.positions.applied, last);
  EXPECT_TRUE(h_.fatal().empty());
}

TEST_F(DcLinkTest, ManyReadsInOneCall) {
  Begin();
  h_.CommitAndApply({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  std::vector<DataRequest> requests(4);
  const char* keys[] = {"a", "b", "x", "c"};
  std::vector<DataRequest*> pointers;
  for (int i = 0; i < 4; ++i) {
    requests[i].table = kTable;
    requests[i].key = keys[i];
    pointers.push_back(&requests[i]);
  }
  for (int round = 0; round < 2; ++round) {  // requests are reused as they are
    ASSERT_TRUE(h_.link->Read(pointers, LinkHarness::Soon()).ok());
    EXPECT_EQ(requests[0].answer.size(), 1u);
    EXPECT_EQ(requests[1].answer.size(), 1u);
    EXPECT_EQ(requests[2].answer.size(), 0u);
    EXPECT_EQ(requests[3].answer.size(), 1u);
  }
}

// Answers from memory count; only the remaining keys are requested from the DC.
TEST_F(DcLinkTest, OfSeveralDirectReadsThoseThatNeedTheDiskAreAskedFor) {
  h_.dc.AnswerDirectly([](std::string_view key) { return key != "b" && key != "x"; });
  Begin();
  h_.CommitAndApply({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  const uint64_t before = h_.dc.counts().reads;
  const auto values = [&](const std::vector<std::string>& keys) {
    std::vector<DataRequest> requests(keys.size());
    std::vector<DataRequest*> pointers;
    for (size_t i = 0; i < keys.size(); ++i) {
      requests[i].table = kTable;
      requests[i].key = keys[i];
      pointers.push_back(&requests[i]);
    }
    EXPECT_TRUE(h_.link->Read(pointers, LinkHarness::Soon()).ok());
    std::string text;
    for (const DataRequest& request : requests) {
      EXPECT_TRUE(request.status.ok()) << request.status.ToString();
      RecordBatch::Iterator it(request.answer);
      text += it.Valid() ? it.record().value : "-";
    }
    return text;
  };
  EXPECT_EQ(values({"a", "c", "d"}), "13-");
  EXPECT_EQ(h_.dc.counts().reads, before);
  EXPECT_EQ(values({"a", "b", "c", "x", "b"}), "123-2");
  EXPECT_EQ(h_.dc.counts().reads, before + 3);
  EXPECT_EQ(values({"b"}), "2");
  EXPECT_EQ(h_.dc.counts().reads, before + 4);
}

// A commit that is larger than a log record, a chunk and a batch. It travels in several batches, and an incarnation
// that ends in the middle changes nothing.
TEST_F(DcLinkTest, ACommitLargerThanABatchSurvivesAKillInItsMiddle) {
  h_.link_options.batch_bytes = 16 << 10;
  h_.link_options.window_bytes = 64 << 10;
  Begin();
  h_.CommitAndApply({{"before", "1"}});
  h_.dc.MakeStable();
  std::atomic<int>& seen = NewCounter();
  std::atomic<int>& reached = NewCounter();
  h_.dc.OnEntry([&](const LogEntryView&) {
    if (++seen == 250) reached = 1;
  });
  std::vector<std::pair<std::string, std::string>> puts;
  for (int i = 0; i < 1000; ++i) puts.emplace_back(absl::StrCat("big", i), std::string(300, 'a' + i % 26));
  const Position end = h_.Commit(puts);
  ASSERT_TRUE(Eventually([&] { return reached.load() != 0; }));
  h_.dc.MakeStable();  // part of the commit is stable: the next incarnation begins inside it
  h_.dc.Restart();
  ASSERT_TRUE(h_.WaitApplied(end));
  for (int i = 0; i < 1000; i += 37) EXPECT_EQ(Text(h_.Read(puts[i].first)), puts[i].second);
  EXPECT_EQ(h_.dc.records(), 1001u);
  EXPECT_GE(h_.link->status().shipped.batches, 300u * 1000 / (17 << 10));
}

// S1: T20 is above low-water, because T15 is still active. It holds back T12, which committed behind it.
TEST_F(DcLinkTest, S1HoldsBackWhatIsNotBelowLowWater) {
  h_.transactions.SkipTo(Timestamp{9});
  Begin();
  const uint64_t base = h_.transactions.next().value;
  h_.transactions.HoldBackAt(base + 15);  // before the link can see that later timestamps were drawn
  h_.transactions.SkipTo(Timestamp{base + 30});
  std::atomic<int>& above = NewCounter();
  h_.dc.OnEntry([&](const LogEntryView& entry) {
    if (entry.kind != LogEntryKind::kLowWater && entry.timestamp >= h_.transactions.low_water()) ++above;
  });
  h_.Commit({{"a", "9"}}, Timestamp{base + 9});
  h_.Commit({{"a", "20"}}, Timestamp{base + 20});
  h_.Commit({{"b", "12"}}, Timestamp{base + 12});
  ASSERT_TRUE(Eventually([&] {
    return (h_.link->status().shipped.held_back_rounds >= 3 && !SeenUpdates().empty()) || SeenUpdates().size() > 1;
  })) << h_.link->status().state;
  EXPECT_EQ(SeenUpdates(), std::vector<uint64_t>({base + 9}));
  EXPECT_EQ(h_.dc.Get(kTable, "a"), "9") << "the reader at 15 finds its version in the DC";
  h_.transactions.Release();
  ASSERT_TRUE(Eventually([&] { return SeenUpdates().size() == 3; }));
  EXPECT_EQ(SeenUpdates(), std::vector<uint64_t>({base + 9, base + 20, base + 12})) << "commit-record order";
  EXPECT_EQ(above, 0);
}

// X1: a low-water record must be durable before the DC acts on it. Otherwise a crash of the TC gives its LSN to other
// records, which the DC then treats as applied.
TEST_F(DcLinkTest, X1LowWaterTravelsOnlyWhenDurable) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  std::atomic<int>& too_early = NewCounter();
  h_.dc.OnEntry([&](const LogEntryView& entry) {
    if (entry.position.commit >= h_.log->durable()) ++too_early;
  });
  h_.disk.HoldCompletions(true);
  const Lsn durable = h_.log->durable();
  const uint64_t before = h_.link->status().shipped.low_water_records;
  h_.dc.Restart();  // a new stream: one low-water record is appended, and cannot become durable
  ASSERT_TRUE(Eventually([&] { return h_.link->status().shipped.low_water_records > before; }));
  const Position applied = h_.dc.applied();
  EXPECT_FALSE(Within(milliseconds(50), [&] { return h_.dc.applied().commit >= durable; }));
  EXPECT_EQ(too_early, 0);
  h_.disk.HoldCompletions(false);
  EXPECT_TRUE(Eventually([&] { return h_.dc.applied() > applied && h_.dc.applied().commit >= durable; }));
}

TEST_F(DcLinkTest, X1OneLowWaterRecordFollowsTheLastCommit) {
  Begin();
  for (int burst = 0; burst < 3; ++burst) {
    for (int i = 0; i < 100; ++i) h_.Commit({{absl::StrCat("k", i), "v"}});
    const uint64_t last = h_.transactions.next().value - 1;
    ASSERT_TRUE(Eventually([&] { return Covered(last); }));
    const size_t count = SeenLowWaters();
    EXPECT_FALSE(Within(milliseconds(40), [&] { return SeenLowWaters() != count; }))
        << "a quiet system appends nothing";
  }
}

// X1's counter-example, end to end: T9 commits before T7, both on the fake's one page. If the DC consolidated at 9
// before T7 has arrived, T7 would count as a duplicate.
TEST_F(DcLinkTest, X1AnEarlierTimestampThatCommitsLaterIsNotADuplicate) {
  Begin();
  const uint64_t base = h_.transactions.next().value;
  h_.transactions.HoldBackAt(base + 7);  // before the link can see that later timestamps were drawn
  h_.transactions.SkipTo(Timestamp{base + 10});
  h_.Commit({{"k2", "nine"}}, Timestamp{base + 9});
  ASSERT_TRUE(Eventually([&] { return h_.link->status().shipped.held_back_rounds >= 2; }));
  const Position end = h_.Commit({{"k1", "seven"}}, Timestamp{base + 7});
  h_.transactions.Release();
  ASSERT_TRUE(h_.WaitApplied(end));
  ASSERT_TRUE(Eventually([&] { return Covered(base + 9); }));
  EXPECT_EQ(h_.dc.Get(kTable, "k1"), "seven");
  EXPECT_EQ(h_.dc.Get(kTable, "k2"), "nine");
}

TEST_F(DcLinkTest, AnIdleLinkSendsNothingAndSleeps) {
  h_.link_options.redo_start_period = seconds(1);
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  ASSERT_TRUE(Eventually([&] { return Covered(h_.transactions.next().value - 1); }));
  ASSERT_TRUE(Eventually([&] { return h_.link->status().in_flight_bytes == 0; }));
  uint64_t wakeups = 0, batches = 0;
  // The last acknowledgement and the last record's durability may still arrive.
  ASSERT_TRUE(Eventually([&] {
    const DcLinkStatus status = h_.link->status();
    const bool still = status.shipped.wakeups == wakeups;
    wakeups = status.shipped.wakeups;
    batches = status.shipped.batches;
    return still;
  }));
  EXPECT_FALSE(Within(milliseconds(300), [&] { return h_.link->status().shipped.batches != batches; }));
  EXPECT_LE(h_.link->status().shipped.wakeups, wakeups + 5);
}

// --- X3: incarnations of the DC.

TEST_F(DcLinkTest, X3ReadsWaitUntilANewIncarnationHasAllThatWasEverSent) {
  Begin();
  h_.CommitAndApply({{"a", "old"}});
  h_.dc.MakeStable();
  // The DC applies "new", but its acknowledgement is lost: sent, not acknowledged.
  h_.dc.LoseAcks(true);
  h_.Commit({{"a", "new"}});
  ASSERT_TRUE(Eventually([&] { return h_.dc.Get(kTable, "a") == "new"; }));
  EXPECT_EQ(Text(h_.Read("a")), "new") << "somebody has seen it";
  h_.dc.HoldApply(true);
  h_.dc.Restart();
  h_.dc.LoseAcks(false);
  ASSERT_TRUE(Eventually([&] { return h_.link->status().peer.incarnation == h_.dc.incarnation(); }));
  const auto early = h_.Read("a", LinkHarness::After(milliseconds(60)));
  ASSERT_FALSE(early.ok()) << "an answer from the new life, older than what was seen: " << Text(early);
  EXPECT_EQ(early.status().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(early.status().ToString(), HasSubstr("dc-under-test (id 3, incarnation 2)"));
  EXPECT_THAT(early.status().ToString(), HasSubstr("that it must hold"));
  EXPECT_FALSE(h_.link->status().gate_open);
  h_.dc.HoldApply(false);
  EXPECT_EQ(Text(h_.Read("a")), "new");
  EXPECT_GE(h_.link->status().shipped.resent_batches, 1u);
}

// A batch that was passed to the stream may have been applied, whether or not its sender survives to learn of it.
TEST_F(DcLinkTest, X3ABatchCountsAsSentBeforeItIsHandedOver) {
  Begin();
  std::atomic<int> batches{0}, too_late{0};
  h_.dc.OnSend([&](const LogBatch& batch) {
    ++batches;
    if (h_.link->status().positions.ever_sent < batch.to) ++too_late;
  });
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.OnSend(nullptr);
  EXPECT_GE(batches, 1);
  EXPECT_EQ(too_late, 0);
}

TEST_F(DcLinkTest, X3AnAnswerFromAnotherIncarnationIsDropped) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.AnswerReadsAs(DcIncarnation{77});  // without the record
  const auto read = h_.Read("a", LinkHarness::After(milliseconds(60)));
  EXPECT_EQ(read.status().code(), ErrorCode::kUnavailable) << Text(read);
  h_.dc.AnswerReadsAs(DcIncarnation{0});
  EXPECT_EQ(Text(h_.Read("a")), "1");
  EXPECT_GE(h_.link->status().repeated_reads, 1u);
}

// The same for requests that may stay without an answer: they do.
TEST_F(DcLinkTest, X3AReadInTwoStepsIsNotRepeated) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  DataRequest request;
  request.table = kTable;
  request.key = "a";
  DataRequest* const requests[] = {&request};
  ASSERT_TRUE(h_.link->TrySubmitReads(requests));
  h_.link->CollectReads(requests, LinkHarness::After(seconds(30)));
  ASSERT_TRUE(request.status.ok()) << request.status.ToString();
  EXPECT_EQ(RecordBatch::Iterator(request.answer).record().value, "1");
  // Answered by another incarnation.
  h_.dc.AnswerReadsAs(DcIncarnation{77});
  ASSERT_TRUE(h_.link->TrySubmitReads(requests));
  h_.link->CollectReads(requests, LinkHarness::After(seconds(30)));
  EXPECT_EQ(request.status.code(), ErrorCode::kWrongIncarnation);
  h_.dc.AnswerReadsAs(DcIncarnation{0});
  // Not answered in time.
  h_.dc.HoldReads(true);
  ASSERT_TRUE(h_.link->TrySubmitReads(requests));
  h_.link->CollectReads(requests, LinkHarness::After(milliseconds(1)));
  EXPECT_EQ(request.status.code(), ErrorCode::kDeadlineExceeded);
  h_.dc.HoldReads(false);
  EXPECT_EQ(h_.link->status().repeated_reads, 0u);
  // A DC that is away.
  h_.dc.Kill();
  ASSERT_TRUE(Eventually([&] { return !h_.link->status().gate_open; }));
  EXPECT_FALSE(h_.link->TrySubmitReads(requests));
}

TEST_F(DcLinkTest, X3LateAcknowledgementsOfAnEarlierIncarnationAreDropped) {
  Begin();
  h_.dc.HoldAcks(true);
  const Position end = h_.Commit({{"a", "1"}});
  ASSERT_TRUE(Eventually([&] { return h_.dc.Get(kTable, "a") == "1"; }));
  h_.dc.HoldApply(true);
  h_.dc.Restart();
  ASSERT_TRUE(Eventually([&] { return h_.link->status().peer.incarnation == h_.dc.incarnation(); }));
  ASSERT_TRUE(Eventually([&] { return h_.dc.counts().streams >= 2; }));
  h_.dc.DeliverHeldAcks();
  EXPECT_LT(h_.link->applied(), end);
  EXPECT_FALSE(h_.link->status().gate_open);
  EXPECT_GE(h_.link->status().connections.dropped_acks, 1u);
  const auto read = h_.Read("a", LinkHarness::After(milliseconds(20)));
  EXPECT_EQ(read.status().code(), ErrorCode::kUnavailable) << Text(read);
  h_.dc.HoldAcks(false);
  h_.dc.HoldApply(false);
  EXPECT_TRUE(h_.WaitApplied(end));
  EXPECT_EQ(Text(h_.Read("a")), "1");
}

TEST_F(DcLinkTest, X3ReadsInFlightWhenAnIncarnationEndsAreRepeated) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.HoldReads(true);
  const uint64_t reads = h_.dc.counts().reads;
  std::string text;
  auto reader = RealRuntime().StartThread("reader", [&] { text = Text(h_.Read("a")); });
  ASSERT_TRUE(Eventually([&] { return h_.dc.counts().reads > reads; }));
  h_.dc.Kill();
  h_.dc.HoldReads(false);
  h_.dc.Start();
  reader.reset();
  EXPECT_EQ(text, "1");
}

TEST_F(DcLinkTest, AnUnansweredReadIsAbandonedAtItsDeadline) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.HoldReads(true);
  {
    const auto read = h_.Read("a", LinkHarness::After(milliseconds(20)));
    EXPECT_EQ(read.status().code(), ErrorCode::kUnavailable);
    EXPECT_THAT(read.status().ToString(), HasSubstr("has not answered 1 of 1 reads"));
  }
  h_.dc.HoldReads(false);  // would answer into a dead stack frame if the request were not abandoned
  EXPECT_EQ(Text(h_.Read("a")), "1");
}

TEST_F(DcLinkTest, ADcThatIsDownIsTriedAgainWithPauses) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.Kill();
  const auto read = h_.Read("a", LinkHarness::After(milliseconds(200)));
  EXPECT_EQ(read.status().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(read.status().ToString(), HasSubstr("is not connected"));
  const uint64_t hellos = h_.link->status().connections.hellos;
  EXPECT_GE(hellos, 4u);
  EXPECT_LE(hellos, 2 + 200 / 10 + 200 / 2) << "at least half of reconnect_min lies between two";
  h_.dc.Start();
  EXPECT_EQ(Text(h_.Read("a")), "1");
}

TEST_F(DcLinkTest, ABrokenStreamAndDuplicatedAcknowledgementsDoNoHarm) {
  Begin();
  h_.dc.DuplicateAcks(true);
  Position last;
  for (int i = 0; i < 20; ++i) {
    last = h_.Commit({{"a", absl::StrCat(i)}, {absl::StrCat("k", i), "v"}});
    if (i % 5 == 2) h_.dc.BreakStream(DEUT_ERROR(kPositionGap, "a batch went missing"));
  }
  ASSERT_TRUE(h_.WaitApplied(last));
  EXPECT_EQ(Text(h_.Read("a")), "19");
  EXPECT_EQ(h_.link->status().connections.incarnations, 1u);
  EXPECT_GE(h_.link->status().connections.sessions, 2u);
}

// A DC that answers, but takes no log. Reads of applied data go on all the time; new commits wait.
TEST_F(DcLinkTest, X3ReadsGoOnWhileTheLogStreamIsRefused) {
  h_.link_options.reconnect_min = milliseconds(5);
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.RefuseStreams(DEUT_ERROR(kResourceExhausted, "no thread for a stream"));
  h_.dc.BreakStream(DEUT_ERROR(kResourceExhausted, "no room"));
  const uint64_t streams = h_.dc.counts().streams;
  const Position end = h_.Commit({{"a", "2"}});
  // At any moment between two attempts.
  while (h_.dc.counts().streams < streams + 6) {
    ASSERT_TRUE(h_.link->status().gate_open) << h_.link->status().state;
    RealRuntime().Yield();
  }
  EXPECT_TRUE(Eventually([&] {
    const DcLinkStatus status = h_.link->status();
    return !status.shipping &&
           status.state.find("is open to reads, but takes no log: RESOURCE_EXHAUSTED") != std::string::npos;
  }));
  EXPECT_EQ(Text(h_.Read("a")), "1");
  EXPECT_EQ(h_.link->status().connections.incarnations, 1u);
  h_.dc.RefuseStreams(Status());
  ASSERT_TRUE(h_.WaitApplied(end));
  EXPECT_EQ(Text(h_.Read("a")), "2");
}

// The same, and then its incarnation ends. Reads wait for the next one, which must have everything that was ever
// sent.
TEST_F(DcLinkTest, X3AnIncarnationThatEndsWithoutALogStreamIsNotReadAnyMore) {
  h_.link_options.reconnect_min = milliseconds(5);
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  h_.dc.RefuseStreams(DEUT_ERROR(kResourceExhausted, "no thread for a stream"));
  h_.dc.BreakStream(DEUT_ERROR(kResourceExhausted, "no room"));
  h_.dc.Restart();
  const auto read = h_.Read("a", LinkHarness::After(milliseconds(50)));
  EXPECT_EQ(read.status().code(), ErrorCode::kUnavailable) << "it has nothing, and gets nothing";
  h_.dc.RefuseStreams(Status());
  EXPECT_EQ(Text(h_.Read("a")), "1");
}

// A half-open connection: nothing comes back. After a while the link says Hello again, and the answer tells what was
// applied.
TEST_F(DcLinkTest, LostAcknowledgementsAreMadeUpForByHello) {
  h_.link_options.stall_timeout = milliseconds(30);
  Begin();
  h_.dc.LoseAcks(true);
  const Position end = h_.Commit({{"a", "1"}});
  EXPECT_TRUE(h_.WaitApplied(end));
  EXPECT_GE(h_.link->status().connections.hellos, 2u);
}

TEST_F(DcLinkTest, AnAcknowledgementOfTheFutureIsNotBelieved) {
  Begin();
  h_.CommitAndApply({{"a", "1"}});
  ApplyAck lie;
  lie.incarnation = h_.dc.incarnation();
  lie.applied = Position{Lsn{uint64_t{1} << 40}, 0};
  h_.dc.SendFalseAck(lie);
  EXPECT_LT(h_.link->applied(), lie.applied);
  h_.CommitAndApply({{"a", "2"}});
  EXPECT_EQ(Text(h_.Read("a")), "2");
  EXPECT_GE(h_.link->status().connections.sessions, 2u);
}

TEST_F(DcLinkTest, TheWindowBoundsWhatIsInFlight) {
  h_.link_options.batch_bytes = 1 << 10;
  h_.link_options.window_bytes = 8 << 10;
  Begin();
  h_.dc.HoldApply(true);
  Position last;
  for (int i = 0; i < 200; ++i) last = h_.Commit({{absl::StrCat("k", i), std::string(300, 'v')}});
  ASSERT_TRUE(Eventually([&] { return h_.link->status().in_flight_bytes > (6 << 10); }));
  EXPECT_FALSE(Within(milliseconds(30), [&] { return h_.link->status().in_flight_bytes > (8 << 10); }));
  h_.dc.HoldApply(false);
  EXPECT_TRUE(h_.WaitApplied(last));
  EXPECT_EQ(h_.dc.records(), 200u);
}

TEST_F(DcLinkTest, TablesPartitionsAndCountersComeFromTheCurrentIncarnation) {
  Begin();
  const Update create{LogEntryKind::kCreateTable, 1, kTable, "accounts", ""};
  h_.log->AppendCommit(h_.transactions.Draw(), {&create, 1});
  Position last;
  for (int i = 0; i < 100; ++i) last = h_.Commit({{absl::StrCat("k", 100 + i), "v"}});
  ASSERT_TRUE(h_.WaitApplied(last));
  h_.dc.Restart();
  const auto tables = h_.link->Tables(LinkHarness::Soon());
  ASSERT_TRUE(tables.ok()) << tables.status().ToString();
  ASSERT_EQ(tables->size(), 1u);
  EXPECT_EQ(tables->front().name, "accounts");
  const auto cuts = h_.link->Partition(kTable, 4, LinkHarness::Soon());
  ASSERT_TRUE(cuts.ok());
  EXPECT_EQ(*cuts, std::vector<std::string>({"k125", "k150", "k175"}));
  EXPECT_TRUE(h_.link->DcCounters(LinkHarness::Soon()).ok());
  h_.dc.Kill();
  EXPECT_EQ(h_.link->Partition(kTable, 4, LinkHarness::After(milliseconds(20))).status().code(),
            ErrorCode::kUnavailable);
}

TEST_F(DcLinkTest, AScanSurvivesARestart) {
  Begin();
  std::vector<std::pair<std::string, std::string>> puts;
  for (int i = 0; i < 300; ++i) puts.emplace_back(absl::StrCat("k", 1000 + i), "v");
  h_.CommitAndApply(puts);
  ScanSpec spec;
  spec.table = kTable;
  spec.batch_bytes = 500;
  auto scan = h_.link->OpenScan(spec, LinkHarness::Soon());
  ASSERT_TRUE(scan.ok()) << scan.status().ToString();
  ASSERT_TRUE((*scan)->Grant("", 1 << 20).ok());
  size_t records = 0;
  ScanBatch batch;
  for (int n = 0; !batch.complete || n == 0; ++n) {
    ASSERT_TRUE((*scan)->Next(&batch, LinkHarness::Soon()).ok());
    records += batch.records.size();
    if (n % 4 == 1) h_.dc.Restart();
  }
  EXPECT_EQ(records, 300u);
}

}  // namespace
}  // namespace deut::tc
