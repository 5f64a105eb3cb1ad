// Rules X3 and X5: which requests are answered at all. If a step is omitted, its test fails (integration/rules.txt).
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/server/data_component_server.h"
#include "dc/server/fencing_fixture.h"
#include "dc/server/server_fixture.h"
#include "dc/server/state_file.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST_F(FencingTest, X5LowerEpochsAreRefused) {
  SayHello(*server_, 5);
  EXPECT_EQ(server_->Hello(HelloOf(4), kNoDeadline).status(), ErrorCode::kFenced);
  EXPECT_TRUE(server_->Hello(HelloOf(5), kNoDeadline).ok());
  SayHello(*server_, 6);
  EXPECT_EQ(server_->Hello(HelloOf(5), kNoDeadline).status(), ErrorCode::kFenced);
}

TEST_F(FencingTest, X5TheSameEpochWithAnotherNonceIsRefused) {
  SayHello(*server_, 5, 1);
  EXPECT_EQ(server_->Hello(HelloOf(5, 2), kNoDeadline).status(), ErrorCode::kFenced);
}

std::string Bytes(Storage& storage, const std::string& path) {
  const auto file = storage.Open(path, {});
  std::string bytes(*(*file)->Size(), '\0');
  EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
  return bytes;
}

void Write(Storage& storage, const std::string& path, const std::string& bytes) {
  const auto file = storage.Open(path, {.create = true, .writable = true});
  ASSERT_TRUE((*file)->Truncate(0).ok());
  ASSERT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
}

constexpr char kStatePath[] = "/data/dc/dc_state";

TEST_F(FencingTest, AnotherTcIsRefusedByNameAndNothingIsChanged) {
  SayHello(*server_, 5);
  const std::string before = Bytes(*storage_, kStatePath);
  for (const bool inquiry : {false, true}) {
    HelloRequest request = HelloOf(6, 1, /*tc=*/8);
    request.inquiry = inquiry;
    const Status refused = server_->Hello(request, kNoDeadline).status();
    EXPECT_EQ(refused, ErrorCode::kWrongState);
    EXPECT_NE(refused.message().find("belongs to TC 5, not to TC 8"), std::string::npos) << refused.message();
  }
  EXPECT_EQ(Bytes(*storage_, kStatePath), before);
}

// A TC that connects to a wrong DC, even a new one, must not claim it: that DC's right TC would be refused for ever.
TEST_F(FencingTest, X4ATcThatExpectsAnotherDcIsRefusedByNameAndNothingIsChanged) {
  const std::string before = Bytes(*storage_, kStatePath);
  HelloRequest request = HelloOf(5);
  request.expected_dc = DcId(server_->id().value + 1);
  const Status refused = server_->Hello(request, kNoDeadline).status();
  EXPECT_EQ(refused, ErrorCode::kWrongState);
  EXPECT_NE(refused.message().find(Concat("this is data component ", server_->id().value)), std::string::npos);
  EXPECT_NE(refused.message().find(Concat("knows data component ", server_->id().value + 1)), std::string::npos);
  EXPECT_EQ(Bytes(*storage_, kStatePath), before);
  request.expected_dc = server_->id();
  EXPECT_TRUE(server_->Hello(request, kNoDeadline).ok());
  EXPECT_NE(Bytes(*storage_, kStatePath), before);
}

TEST_F(FencingTest, AnInquiryChangesNothing) {
  HelloRequest inquiry = HelloOf(9);
  inquiry.inquiry = true;
  const std::string before = Bytes(*storage_, kStatePath);
  const auto fresh = server_->Hello(inquiry, kNoDeadline);
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(fresh->obeyed, ObeyedTc());
  EXPECT_EQ(Bytes(*storage_, kStatePath), before);
  const Sender sender = SayHello(*server_, 5, 3);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(sender, &listener, kNoDeadline);
  inquiry.epoch = TcEpoch(2);  // a lower epoch may send an inquiry, too
  const auto answer = server_->Hello(inquiry, kNoDeadline);
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->obeyed, (ObeyedTc{TcId(5), TcEpoch(5), 3}));
  EXPECT_EQ(answer->incarnation, server_->incarnation());
  EXPECT_EQ(answer->number.value, 1u);
  EXPECT_EQ(listener.closings, 0) << "the TC that is obeyed goes on";
  EXPECT_TRUE((*stream)->Send(TestLog().Create().Take(), kNoDeadline).ok());
}

HelloRequest InquiryOf(uint64_t epoch) {
  HelloRequest inquiry = HelloOf(epoch);
  inquiry.inquiry = true;
  return inquiry;
}

// Returns the state that a TC would decide on now.
HelloBasis Ask(DataComponentServer& server, uint64_t epoch) {
  const auto told = server.Hello(InquiryOf(epoch), kNoDeadline);
  EXPECT_TRUE(told.ok()) << told.status().ToString();
  return HelloBasis{told->incarnation, told->obeyed, told->applied, told->log_durable};
}

// Each refusal is repeated, as by a supervisor that restarts the TC: the message and the bytes on disk stay the same.
TEST_F(FencingTest, RefusedHellosChangeNothingHoweverOften) {
  const Sender sender = SayHello(*server_, 5, 3);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(sender, &listener, kNoDeadline);
  TestLog log;
  ASSERT_TRUE((*stream)->Send(log.Create().Take(), kNoDeadline).ok());
  HelloRequest version = HelloOf(6);
  version.protocol_version = kProtocolVersion + 1;
  HelloRequest other_dc = HelloOf(6);
  other_dc.expected_dc = DcId(server_->id().value + 1);
  HelloRequest other_basis = HelloOf(6);
  other_basis.decided_on = HelloBasis();
  struct {
    HelloRequest request;
    ErrorCode code;
    std::string text;
  } const refused[] = {
      {version, ErrorCode::kVersionMismatch, Concat("protocol version ", kProtocolVersion + 1)},
      {other_dc, ErrorCode::kWrongState, Concat("this is data component ", server_->id().value)},
      {HelloOf(6, 1, 8), ErrorCode::kWrongState, "belongs to TC 5, not to TC 8"},
      {HelloOf(6, 1, 0), ErrorCode::kInvalidArgument, "TC ids start at 1"},
      {HelloOf(0), ErrorCode::kInvalidArgument, "TC epochs start at 1"},
      {HelloOf(4), ErrorCode::kFenced, "has been replaced by epoch 5"},
      {HelloOf(5, 4), ErrorCode::kFenced, "another TC instance has said Hello with epoch 5"},
      {HelloOf(kMaxTcEpoch.value + 1), ErrorCode::kInvalidArgument, "which no TC comes to"},
      {HelloOf(UINT64_MAX), ErrorCode::kInvalidArgument, "which no TC comes to"},
      {other_basis, ErrorCode::kUnavailable, "ask again"},
  };
  const std::string before = Bytes(*storage_, kStatePath);
  for (const auto& each : refused) {
    SCOPED_TRACE(each.text);
    for (int again = 0; again < 12; ++again) {
      const Status status = server_->Hello(each.request, kNoDeadline).status();
      ASSERT_EQ(status, each.code) << status.ToString();
      EXPECT_NE(status.message().find(each.text), std::string::npos) << status.message();
      ASSERT_TRUE(Bytes(*storage_, kStatePath) == before);
    }
  }
  // The TC that the DC obeys has noticed nothing.
  EXPECT_EQ(listener.closings.load(), 0);
  EXPECT_TRUE((*stream)->Send(log.Put("k", "v").Take(), kNoDeadline).ok());
  stream->reset();
  Restart();
  EXPECT_EQ(Ask(*server_, 6).obeyed, (ObeyedTc{TcId(5), TcEpoch(5), 3}));
}

// The highest epoch that a log may have is accepted. No higher one is, because no TC could ever take over from it.
TEST_F(FencingTest, X5EpochsUpToTheHighestOfALogAreTaken) {
  SayHello(*server_, kMaxTcEpoch.value - 1);
  SayHello(*server_, kMaxTcEpoch.value);
}

// X4: a Hello is obeyed only while the state that its TC has compared with its log is still true.
TEST_F(FencingTest, X4AHelloThatWasDecidedOnSomethingElseIsRefusedAndNothingIsChanged) {
  const Sender older = SayHello(*server_, 5, 3);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(older, &listener, kNoDeadline);
  TestLog log;
  ASSERT_TRUE((*stream)->Send(log.Create().Take(), kNoDeadline).ok());
  const HelloBasis told = Ask(*server_, 6);
  HelloRequest hello = HelloOf(6);
  for (int part = 0; part < 4; ++part) {
    SCOPED_TRACE(part);
    hello.decided_on = told;
    if (part == 0) ++hello.decided_on->incarnation.value;
    if (part == 1) ++hello.decided_on->obeyed.nonce;
    if (part == 2) ++hello.decided_on->applied.sequence;
    if (part == 3) ++hello.decided_on->log_durable.value;
    EXPECT_EQ(server_->Hello(hello, kNoDeadline).status(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(Ask(*server_, 6), told);
  // Batches that the older TC ships meanwhile invalidate the decision. After another inquiry the Hello is accepted.
  ASSERT_TRUE((*stream)->Send(log.Put("k", "v").Take(), kNoDeadline).ok());
  hello.decided_on = told;
  EXPECT_EQ(server_->Hello(hello, kNoDeadline).status(), ErrorCode::kUnavailable);
  EXPECT_EQ(listener.closings.load(), 0);
  hello.decided_on = Ask(*server_, 6);
  EXPECT_TRUE(server_->Hello(hello, kNoDeadline).ok());
  EXPECT_EQ(listener.reason, ErrorCode::kFenced);
}

// The obeyed TC says Hello again while its own batches arrive: these do not invalidate its decision.
TEST_F(FencingTest, X4TheOwnBatchesOfATcDoNotMakeItsDecisionVoid) {
  const Sender sender = SayHello(*server_, 5);
  HelloRequest hello = HelloOf(5);
  hello.decided_on = Ask(*server_, 5);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(sender, &listener, kNoDeadline);
  LogBatch batch = TestLog().Create().Take();
  batch.durable = Lsn(500);
  ASSERT_TRUE((*stream)->Send(batch, kNoDeadline).ok());
  EXPECT_TRUE(server_->Hello(hello, kNoDeadline).ok());
  ++hello.decided_on->incarnation.value;
  EXPECT_EQ(server_->Hello(hello, kNoDeadline).status(), ErrorCode::kUnavailable);
}

// A batch of the older TC is being applied when the Hello arrives. The DC waits for it first, so that nothing moves
// between the comparison and the moment from which the DC obeys.
TEST_F(FencingTest, X4ABatchInFlightIsSeenByTheComparison) {
  const Sender older = SayHello(*server_, 1);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(older, &listener, kNoDeadline);
  TestLog log;
  ASSERT_TRUE((*stream)->Send(log.Create().Take(), kNoDeadline).ok());
  HelloRequest hello = HelloOf(2);
  hello.decided_on = Ask(*server_, 2);
  const std::string before = Bytes(*storage_, kStatePath);
  Event inside, go_on;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "dc.apply.before_batch") return;
    inside.Signal(RealRuntime());
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  const auto sender = RealRuntime().StartThread(
      "old TC", [&] { EXPECT_TRUE((*stream)->Send(log.Put("k", "late").Take(), kNoDeadline).ok()); });
  inside.Wait(RealRuntime(), kNoDeadline);
  Event answered;
  Status status;
  const auto newer = RealRuntime().StartThread("new TC", [&] {
    status = server_->Hello(hello, kNoDeadline).status();
    answered.Signal(RealRuntime());
  });
  EXPECT_FALSE(answered.Wait(RealRuntime(), RealRuntime().Now() + milliseconds(50)));
  go_on.Signal(RealRuntime());
  answered.Wait(RealRuntime(), kNoDeadline);
  sender->Join();
  newer->Join();
  testing::SetPointHandler(nullptr);
  EXPECT_EQ(status, ErrorCode::kUnavailable) << status.ToString();
  EXPECT_EQ(Bytes(*storage_, kStatePath), before);
  // The older TC is still obeyed. Its stream was closed, as if the connection had broken.
  listener.closed.Wait(RealRuntime(), kNoDeadline);
  EXPECT_EQ(listener.reason, ErrorCode::kCancelled);
  EXPECT_EQ(Read(*server_, older, "k").value, "late");
  EXPECT_TRUE(server_->OpenApplyLog(older, &listener, kNoDeadline).ok());
}

// X4: the durable LSN that a TC reports is told to every inquirer and outlives the DC. The figure of a new TC
// incarnation replaces it.
TEST_F(FencingTest, X4HowFarTheLogIsDurableIsRemembered) {
  HelloRequest hello = HelloOf(5);
  hello.log_durable = Lsn(100);
  ASSERT_TRUE(server_->Hello(hello, kNoDeadline).ok());
  EXPECT_EQ(Ask(*server_, 6).log_durable, Lsn(100));
  const Sender sender = SayHello(*server_, 5);
  EXPECT_EQ(Ask(*server_, 6).log_durable, Lsn(100)) << "the same life has said more before";
  CountingListener listener;
  auto stream = server_->OpenApplyLog(sender, &listener, kNoDeadline);
  LogBatch batch = TestLog().Create().Take();
  batch.durable = Lsn(5000);
  ASSERT_TRUE((*stream)->Send(batch, kNoDeadline).ok());
  LogBatch empty;
  empty.from = empty.to = batch.to;
  empty.durable = Lsn(4000);
  ASSERT_TRUE((*stream)->Send(empty, kNoDeadline).ok());
  EXPECT_EQ(Ask(*server_, 6).log_durable, Lsn(5000));
  // Soon the LSN is on disk: a DC that is killed knows it afterwards.
  const auto on_disk = [&] { return DecodeDcState(Bytes(*storage_, kStatePath), kStatePath)->log_durable; };
  const Deadline limit = RealRuntime().Now() + seconds(30);
  while (on_disk() != Lsn(5000) && RealRuntime().Now() < limit)
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
  EXPECT_EQ(on_disk(), Lsn(5000));
  // An LSN that arrives in the pause after that is written when the DC ends.
  empty.durable = Lsn(6000);
  ASSERT_TRUE((*stream)->Send(empty, kNoDeadline).ok());
  stream->reset();
  Restart();
  EXPECT_EQ(Ask(*server_, 6).log_durable, Lsn(6000));
  hello = HelloOf(6);
  hello.log_durable = Lsn(300);
  ASSERT_TRUE(server_->Hello(hello, kNoDeadline).ok());
  EXPECT_EQ(Ask(*server_, 7).log_durable, Lsn(300));
  Restart();
  EXPECT_EQ(Ask(*server_, 7).log_durable, Lsn(300));
}

// The DC's identity never changes, while the obeyed TC does. Hellos of other TCs and counters read both concurrently
// (under TSan).
TEST_F(FencingTest, HellosOfNewLivesBesideThoseThatReadWhoItIs) {
  std::atomic<bool> stop{false};
  std::atomic<int> looks{0};
  const DcId id = server_->id();
  const auto reader = RealRuntime().StartThread("reader", [&] {
    HelloRequest stranger = HelloOf(1);
    stranger.expected_dc = DcId(id.value + 1);
    while (!stop.load()) {
      EXPECT_EQ(server_->Hello(stranger, kNoDeadline).status(), ErrorCode::kWrongState);
      EXPECT_EQ(Counter(*server_, "incarnation"), 1u);
      looks.fetch_add(1);
    }
  });
  uint64_t epoch = 0;
  while (looks.load() < 50 || epoch < 50) SayHello(*server_, ++epoch);
  stop.store(true);
  reader->Join();
  EXPECT_EQ(server_->id(), id);
}

// Starts from copies of one folder have the same number. With the number alone, a TC would take answers of one copy
// for answers of the other.
TEST_F(FencingTest, X3StartsFromCopiesOfOneFolderAreDifferentIncarnations) {
  server_.reset();
  const std::string copy = Bytes(*storage_, kStatePath);
  server_ = StartServer(*storage_);
  const Sender original = SayHello(*server_, 1);
  const uint64_t number = Counter(*server_, "incarnation");
  server_.reset();
  Write(*storage_, kStatePath, copy);
  server_ = StartServer(*storage_);
  const Sender put_back = SayHello(*server_, 1);
  EXPECT_EQ(Counter(*server_, "incarnation"), number);
  EXPECT_NE(original.incarnation, put_back.incarnation);
  EXPECT_EQ(Read(*server_, original, "k").status, ErrorCode::kWrongIncarnation);
}

TEST_F(FencingTest, BadHellos) {
  HelloRequest request = HelloOf(1);
  request.protocol_version = kProtocolVersion + 1;
  EXPECT_EQ(server_->Hello(request, kNoDeadline).status(), ErrorCode::kVersionMismatch);
  EXPECT_EQ(server_->Hello(HelloOf(0), kNoDeadline).status(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(server_->Hello(HelloOf(1, 1, 0), kNoDeadline).status(), ErrorCode::kInvalidArgument);
}

TEST_F(FencingTest, X5TheFenceOutlivesTheDc) {
  SayHello(*server_, 5);
  Restart();
  EXPECT_EQ(server_->Hello(HelloOf(4), kNoDeadline).status(), ErrorCode::kFenced);
  EXPECT_TRUE(server_->Hello(HelloOf(5), kNoDeadline).ok());
}

TEST_F(FencingTest, X5RequestsOfAReplacedTcAreRefused) {
  const Sender older = SayHello(*server_, 5);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(older, &listener, kNoDeadline);
  ASSERT_TRUE(stream.ok());
  TestLog log;
  ASSERT_TRUE((*stream)->Send(log.Create().Put("k", "v").Take(), kNoDeadline).ok());
  ScanSpec spec;
  spec.table = kTable;
  auto scan = server_->OpenScan(older, spec, kNoDeadline);
  ASSERT_TRUE(scan.ok());
  ASSERT_TRUE((*scan)->Grant("", 1 << 20).ok());

  const Sender newer = SayHello(*server_, 6);
  EXPECT_EQ(listener.closings.load(), 1);
  EXPECT_EQ(listener.reason, ErrorCode::kFenced);
  EXPECT_EQ((*stream)->Send(log.Put("k", "zombie").Take(), kNoDeadline), ErrorCode::kFenced);
  ScanBatch batch;
  EXPECT_EQ((*scan)->Next(&batch, kNoDeadline), ErrorCode::kFenced);
  EXPECT_EQ(Read(*server_, older, "k").status, ErrorCode::kFenced);
  EXPECT_EQ(server_->OpenScan(older, spec, kNoDeadline).status(), ErrorCode::kFenced);
  EXPECT_EQ(server_->OpenApplyLog(older, &listener, kNoDeadline).status(), ErrorCode::kFenced);
  EXPECT_EQ(server_->Partition(older, kTable, 4, kNoDeadline).status(), ErrorCode::kFenced);
  EXPECT_EQ(server_->Tables(older, kNoDeadline).status(), ErrorCode::kFenced);
  EXPECT_EQ(Read(*server_, newer, "k").value, "v");
  EXPECT_EQ(listener.closings.load(), 1);
}

TEST_F(FencingTest, RequestsBeforeHello) {
  const Sender early{TcId(5), TcEpoch(1), 1, server_->incarnation()};
  EXPECT_EQ(Read(*server_, early, "k").status, ErrorCode::kUnavailable);
  SayHello(*server_, 1);
  Sender ahead = early;
  ahead.epoch = TcEpoch(2);
  EXPECT_EQ(Read(*server_, ahead, "k").status, ErrorCode::kUnavailable);
}

TEST_F(FencingTest, X3RequestsForAnotherLifeAreRefused) {
  const Sender before = SayHello(*server_, 1);
  Restart();
  EXPECT_EQ(Read(*server_, before, "k").status, ErrorCode::kWrongIncarnation);
  const Sender after = SayHello(*server_, 1);
  EXPECT_NE(before.incarnation, after.incarnation);
  // The epoch is right, but the incarnation is not: an answer would miss updates that the earlier incarnation had
  // applied.
  CountingListener listener;
  auto stream = server_->OpenApplyLog(after, &listener, kNoDeadline);
  ASSERT_TRUE((*stream)->Send(TestLog().Create().Take(), kNoDeadline).ok());
  EXPECT_EQ(Read(*server_, before, "k").status, ErrorCode::kWrongIncarnation);
  EXPECT_EQ(server_->OpenApplyLog(before, &listener, kNoDeadline).status(), ErrorCode::kWrongIncarnation);
  const ReadAnswer answer = Read(*server_, after, "k");
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
  EXPECT_EQ(answer.answered_by, after.incarnation);
}

// Incarnations and fences across crashes at every step of the disk: a number that was ever told is never used again,
// and a fence that a TC was told is never forgotten.
TEST(FencingCrashTest, X5NeitherLivesNorFencesAreForgotten) {
  uint64_t hellos = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(Concat("seed ", seed));
    FaultyDisk disk(RealRuntime(), seed);
    Random random(seed);
    uint64_t last_number = 0;
    uint64_t last_epoch = 0;
    for (int life = 0; life < 25; ++life) {
      const auto storage = disk.Mount();
      if (random.OneIn(3)) disk.CrashAfter(random.Between(1, 14));
      auto server = OpenServer(*storage);
      if (server.ok()) {
        const uint64_t number = Counter(**server, "incarnation");
        ASSERT_GT(number, last_number);
        last_number = number;
        if (last_epoch > 1)
          ASSERT_EQ((*server)->Hello(HelloOf(last_epoch - 1), kNoDeadline).status(), ErrorCode::kFenced);
        for (uint64_t n = random.Below(4); n > 0; --n) {
          const uint64_t epoch = last_epoch + random.Between(1, 3);
          if (!(*server)->Hello(HelloOf(epoch), kNoDeadline).ok()) break;
          last_epoch = epoch;
          ++hellos;
        }
      }
      disk.CrashAfter(0);
      disk.Crash(random.Next());
    }
  }
  EXPECT_GT(hellos, 100u);
}

}  // namespace
}  // namespace deut::dc
