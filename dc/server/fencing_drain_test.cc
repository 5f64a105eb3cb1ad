// Rule X5: a Hello waits for the calls of the TC that it replaces, and none of them has an effect or an answer afterwards.
// If a step is omitted, its test fails (integration/rules.txt).
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/server/data_component_server.h"
#include "dc/server/fencing_fixture.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class FencingDrainTest : public FencingTest {};

// A batch of the old TC is being applied when the new TC says Hello. The Hello waits until the batch ends, and no
// call of the old TC has an effect after the answer.
TEST_F(FencingDrainTest, X5HelloDrainsABatchInFlight) {
  const Sender older = SayHello(*server_, 1);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(older, &listener, kNoDeadline);
  TestLog log;
  ASSERT_TRUE((*stream)->Send(log.Create().Take(), kNoDeadline).ok());
  Event inside;
  Event go_on;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "dc.apply.before_batch") return;
    inside.Signal(RealRuntime());
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  std::atomic<bool> applied{false};
  const auto sender = RealRuntime().StartThread("old TC", [&] {
    EXPECT_TRUE((*stream)->Send(log.Put("k", "late").Take(), kNoDeadline).ok());
    applied.store(true);
  });
  inside.Wait(RealRuntime(), kNoDeadline);
  Event answered;
  const auto hello = RealRuntime().StartThread("new TC", [&] {
    const auto answer = server_->Hello(HelloOf(2), kNoDeadline);
    EXPECT_TRUE(answer.ok());
    EXPECT_EQ(answer->applied, log.end());  // it covers the batch that was inside
    answered.Signal(RealRuntime());
  });
  EXPECT_FALSE(answered.Wait(RealRuntime(), RealRuntime().Now() + milliseconds(50)));
  go_on.Signal(RealRuntime());
  answered.Wait(RealRuntime(), kNoDeadline);
  sender->Join();
  hello->Join();
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(applied.load());
  EXPECT_EQ(listener.reason, ErrorCode::kFenced);
}

// The same for a read: the new TC may change the DC's records as soon as it has its answer.
TEST_F(FencingDrainTest, X5HelloDrainsReadsInFlight) {
  const Sender older = SayHello(*server_, 1);
  Event inside;
  Event go_on;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "dc.admission.admitted") return;
    inside.Signal(RealRuntime());
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  std::atomic<bool> read{false};
  const auto reader = RealRuntime().StartThread("old TC", [&] {
    Read(*server_, older, "k");
    read.store(true);
  });
  inside.Wait(RealRuntime(), kNoDeadline);
  Event answered;
  const auto hello = RealRuntime().StartThread("new TC", [&] {
    EXPECT_TRUE(server_->Hello(HelloOf(2), kNoDeadline).ok());
    answered.Signal(RealRuntime());
  });
  EXPECT_FALSE(answered.Wait(RealRuntime(), RealRuntime().Now() + milliseconds(50)));
  EXPECT_EQ(Read(*server_, older, "k").status, ErrorCode::kFenced);  // no new call enters meanwhile
  EXPECT_FALSE(read.load());
  go_on.Signal(RealRuntime());
  answered.Wait(RealRuntime(), kNoDeadline);
  reader->Join();
  hello->Join();
  testing::SetPointHandler(nullptr);
}

std::string ReadDirectly(DirectReads& reads, std::string_view key) {
  DataRequest request;
  request.table = kTable;
  request.key = key;
  DataRequest* const one = &request;
  if (reads.TryAnswer(absl::MakeConstSpan(&one, 1)) == DirectReads::Answered::kNone) return "not answered";
  if (!request.status.ok()) return std::string(ErrorCodeName(request.status.code()));
  EXPECT_FALSE(request.done.IsSet());
  RecordBatch::Iterator it(request.answer);
  return it.Valid() ? std::string(it.record().value) : "-";
}

// X3, X5: direct reads belong to one sender and one incarnation.
TEST_F(FencingDrainTest, X5DirectReadsEndWithTheirFenceOrLife) {
  EXPECT_EQ(server_->OpenReads(Sender{TcId(5), TcEpoch(1), 1, server_->incarnation()}), nullptr) << "before any Hello";
  const Sender older = SayHello(*server_, 1);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(older, &listener, kNoDeadline);
  TestLog log;
  ASSERT_TRUE((*stream)->Send(log.Create().Put("k", "v").Take(), kNoDeadline).ok());
  const std::shared_ptr<DirectReads> of_older = server_->OpenReads(older);
  ASSERT_NE(of_older, nullptr);
  EXPECT_EQ(ReadDirectly(*of_older, "k"), "v");
  EXPECT_EQ(ReadDirectly(*of_older, "absent"), "-");
  EXPECT_EQ(ReadDirectly(*of_older, ""), "INVALID_ARGUMENT");
  Sender of_another_life = older;
  ++of_another_life.incarnation.value;
  EXPECT_EQ(server_->OpenReads(of_another_life), nullptr);
  SayHello(*server_, 1);
  EXPECT_EQ(ReadDirectly(*of_older, "k"), "v") << "the same sender, again";

  const Sender newer = SayHello(*server_, 2);
  EXPECT_EQ(ReadDirectly(*of_older, "k"), "not answered");
  EXPECT_EQ(server_->OpenReads(older), nullptr);
  const std::shared_ptr<DirectReads> of_newer = server_->OpenReads(newer);
  ASSERT_NE(of_newer, nullptr);
  EXPECT_EQ(ReadDirectly(*of_newer, "k"), "v");
  stream->reset();
  Restart();
  EXPECT_EQ(ReadDirectly(*of_newer, "k"), "not answered");
  EXPECT_EQ(server_->OpenReads(newer), nullptr);
}

// Consecutive reads are answered together, here more of them than fit into one group. Requests that are no reads, or
// invalid ones, lie between them.
TEST_F(FencingDrainTest, SeveralDirectReadsHaveEachItsOwnAnswer) {
  constexpr size_t kReads = 40;
  const Sender sender = SayHello(*server_, 1);
  CountingListener listener;
  auto stream = server_->OpenApplyLog(sender, &listener, kNoDeadline);
  TestLog log;
  log.Create();
  std::vector<std::string> keys;
  for (size_t i = 0; i < kReads; ++i) {
    keys.push_back("k" + std::to_string(100 + i));
    if (i % 3 != 0) log.Put(keys[i], "v" + std::to_string(i));
  }
  ASSERT_TRUE((*stream)->Send(log.Take(), kNoDeadline).ok());
  const std::shared_ptr<DirectReads> reads = server_->OpenReads(sender);
  ASSERT_NE(reads, nullptr);
  std::vector<DataRequest> requests(kReads);
  std::vector<DataRequest*> pointers;
  for (size_t i = 0; i < kReads; ++i) {
    requests[i].table = i == 7 ? TableId(99) : kTable;
    requests[i].answer.Append("of an earlier", "answer", Version{});
    if (i != 5) requests[i].key = keys[i];
    if (i == 20) {
      requests[i].kind = DataRequest::Kind::kScan;
      requests[i].limit_records = 2;
    }
    pointers.push_back(&requests[i]);
  }
  ASSERT_EQ(reads->TryAnswer(pointers), DirectReads::Answered::kAll);
  for (size_t i = 0; i < kReads; ++i) {
    const DataRequest& request = requests[i];
    const ErrorCode expected = i == 5 ? ErrorCode::kInvalidArgument : i == 7 ? ErrorCode::kNotFound : ErrorCode::kOk;
    EXPECT_EQ(request.status.code(), expected) << i;
    EXPECT_FALSE(request.done.IsSet());
    const size_t records = expected != ErrorCode::kOk ? 0 : i == 20 ? 2 : i % 3 != 0 ? 1 : 0;
    ASSERT_EQ(request.answer.size(), records) << i;
    if (records == 1) EXPECT_EQ(RecordBatch::Iterator(request.answer).record().value, "v" + std::to_string(i));
  }
}

// Both a Hello of a newer TC and the end of the incarnation wait for a running direct read.
TEST_F(FencingDrainTest, X5HelloDrainsDirectReadsInFlight) {
  for (const bool by_hello : {true, false}) {
    const Sender older = SayHello(*server_, by_hello ? 1 : 2);
    const std::shared_ptr<DirectReads> reads = server_->OpenReads(older);
    ASSERT_NE(reads, nullptr);
    Event inside, go_on, ended;
    testing::SetPointHandler([&](std::string_view name) {
      if (name != "dc.admission.admitted") return;
      inside.Signal(RealRuntime());
      go_on.Wait(RealRuntime(), kNoDeadline);
    });
    std::atomic<bool> read{false};
    const auto reader = RealRuntime().StartThread("old TC", [&] {
      EXPECT_EQ(ReadDirectly(*reads, "k"), "NOT_FOUND") << "the table";
      read.store(true);
    });
    inside.Wait(RealRuntime(), kNoDeadline);
    const auto replaces = RealRuntime().StartThread("new TC", [&] {
      if (by_hello) {
        EXPECT_TRUE(server_->Hello(HelloOf(2), kNoDeadline).ok());
      } else {
        server_.reset();
      }
      ended.Signal(RealRuntime());
    });
    EXPECT_FALSE(ended.Wait(RealRuntime(), RealRuntime().Now() + milliseconds(50)));
    EXPECT_FALSE(read.load());
    go_on.Signal(RealRuntime());
    ended.Wait(RealRuntime(), kNoDeadline);
    reader->Join();
    replaces->Join();
    testing::SetPointHandler(nullptr);
    EXPECT_EQ(ReadDirectly(*reads, "k"), "not answered");
  }
}

// TCs replace each other while the older ones continue to send and read. Each epoch writes its own number. An applied
// state that a newer TC has seen is never overtaken by an older TC.
TEST_F(FencingDrainTest, ZombiesUnderLoad) {
  constexpr uint64_t kEpochs = 12;
  std::atomic<uint64_t> newest{0};
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Thread>> zombies;
  std::vector<std::unique_ptr<CountingListener>> listeners;
  Position applied;
  for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    const Sender sender = SayHello(*server_, epoch);
    newest.store(epoch);
    listeners.push_back(std::make_unique<CountingListener>());
    std::shared_ptr<ApplyLogStream> stream =
        std::move(*server_->OpenApplyLog(sender, listeners.back().get(), kNoDeadline));
    zombies.push_back(RealRuntime().StartThread("zombie", [&, sender, stream, epoch] {
      TestLog log;
      bool open = stream->Send(log.Create().Take(), kNoDeadline).ok();
      while (!stop.load()) {
        if (open) open = stream->Send(log.Put("k", Concat(epoch)).Take(), kNoDeadline).ok();
        const uint64_t at_least = newest.load();
        const ReadAnswer answer = Read(*server_, sender, "k");
        if (at_least > epoch) {
          EXPECT_EQ(answer.status, ErrorCode::kFenced);
        } else if (!answer.status.ok() && answer.status != ErrorCode::kNotFound) {
          EXPECT_EQ(answer.status, ErrorCode::kFenced);
        }
      }
    }));
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(5));
    const auto position = server_->Hello(HelloOf(epoch), kNoDeadline);
    ASSERT_TRUE(position.ok());
    EXPECT_GE(position->applied, applied);
    applied = position->applied;
  }
  stop.store(true);
  zombies.clear();
  for (const auto& listener : listeners) EXPECT_EQ(listener->closings.load(), 1);
}

}  // namespace
}  // namespace deut::dc
