// The start of a data component, its stream of the log, and its state. Reads and scans are in data_component_reads_test.cc.
#include "dc/server/data_component_server.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server_fixture.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

TEST_F(DataComponentServerTest, HelloTellsWhoAndHowFar) {
  Fill(3);
  const auto answer = server_->Hello(HelloOf(1), kNoDeadline);
  ASSERT_TRUE(answer.ok());
  EXPECT_NE(answer->dc.value, 0u);
  EXPECT_EQ(answer->number, IncarnationNumber(1));
  EXPECT_EQ(answer->incarnation, server_->incarnation());
  EXPECT_EQ(answer->obeyed, (ObeyedTc{HelloOf(1).tc, HelloOf(1).epoch, HelloOf(1).nonce}));
  EXPECT_EQ(answer->applied, log_.end());
  EXPECT_EQ(answer->stable, Position());
  EXPECT_GT(answer->free_bytes, 0u);
  ASSERT_EQ(answer->tables.size(), 1u);
  EXPECT_EQ(answer->tables[0].id, kTable);
  EXPECT_EQ(answer->tables[0].name, "accounts");
  EXPECT_EQ(answer->tables[0].records, 3u);
  // The stream continues after a second Hello of the same TC.
  EXPECT_TRUE(Send(log_.Put("a", "b").Take()).ok());
}

TEST_F(DataComponentServerTest, ANewLifeHasTheCheckpointAndGetsTheRestByRedo) {
  log_.Create().Put("k", "v");
  ASSERT_TRUE(Send(log_.Take()).ok());
  const Position stable = log_.end();
  const auto before = server_->Hello(HelloOf(1), kNoDeadline);
  EXPECT_EQ(before->stable, Position());
  EXPECT_EQ(*server_->TakeCheckpoints(log_.end()), stable);
  log_.Put("l", "w");
  const LogBatch redo = log_.Take();
  ASSERT_TRUE(Send(redo).ok());
  EXPECT_EQ(listener_.last.stable, stable);
  stream_.reset();
  server_.reset();
  server_ = StartServer(*storage_);
  sender_ = SayHello(*server_, 1);
  const auto after = server_->Hello(HelloOf(1), kNoDeadline);
  EXPECT_EQ(after->dc, before->dc);
  EXPECT_GT(after->number, before->number);
  EXPECT_EQ(after->applied, stable);
  EXPECT_EQ(after->stable, stable);
  EXPECT_EQ(after->tables.size(), 1u);
  EXPECT_EQ(Read(*server_, sender_, "k").value, "v");
  EXPECT_EQ(Read(*server_, sender_, "l").value, std::nullopt);
  CountingListener listener;
  auto stream = std::move(*server_->OpenApplyLog(sender_, &listener, kNoDeadline));
  ASSERT_TRUE(stream->Send(redo, kNoDeadline).ok());
  EXPECT_EQ(Read(*server_, sender_, "l").value, "w");
}

TEST_F(DataComponentServerTest, OneProcessHasTheDirectory) {
  const auto second = OpenServer(*storage_);
  EXPECT_EQ(second.status(), ErrorCode::kUnavailable) << second.status().ToString();
}

TEST_F(DataComponentServerTest, AcknowledgesWhatItApplied) {
  Fill(10);
  EXPECT_EQ(listener_.acks.load(), 1);
  EXPECT_EQ(listener_.last.applied, log_.end());
  EXPECT_EQ(listener_.last.stable, Position());
  EXPECT_EQ(listener_.last.incarnation, server_->incarnation());
  EXPECT_GT(listener_.last.free_bytes, 0u);
  // A batch also covers the updates that S3 omits: `applied` moves to the end of the batch, which may be empty.
  LogBatch nothing = log_.Take();
  nothing.to = Position{Lsn(nothing.to.commit.value + 1000), UINT32_MAX};
  ASSERT_TRUE(Send(nothing).ok());
  EXPECT_EQ(listener_.last.applied, nothing.to);
  // The position need not move, either: such a batch asks for the free bytes (X7).
  nothing.from = nothing.to;
  ASSERT_TRUE(Send(nothing).ok());
  EXPECT_EQ(listener_.acks.load(), 3);
  EXPECT_EQ(listener_.last.applied, nothing.to);
}

TEST_F(DataComponentServerTest, X5NoGaps) {
  const LogBatch first = log_.Create().Put("a", "1").Take();
  const LogBatch second = log_.Put("b", "2").Take();
  const LogBatch third = log_.Put("c", "3").Take();
  ASSERT_TRUE(Send(first).ok());
  EXPECT_EQ(Send(third), ErrorCode::kPositionGap);
  EXPECT_EQ(listener_.closings.load(), 1);
  EXPECT_EQ(listener_.reason, ErrorCode::kPositionGap);
  EXPECT_EQ(Send(second), ErrorCode::kPositionGap);  // the stream is closed
  EXPECT_EQ(Read(*server_, sender_, "c").value, std::nullopt);
  // A new stream starts at or before the applied position.
  CountingListener listener;
  auto stream = std::move(*server_->OpenApplyLog(sender_, &listener, kNoDeadline));
  for (const LogBatch* batch : {&first, &second, &first, &third}) ASSERT_TRUE(stream->Send(*batch, kNoDeadline).ok());
  EXPECT_EQ(Read(*server_, sender_, "c").value, "3");
  EXPECT_EQ(listener.last.applied, third.to);
  EXPECT_EQ(Counted()["updates_duplicate"], 4u);
}

TEST_F(DataComponentServerTest, X5ANewStreamClosesTheOld) {
  Fill(1);
  CountingListener listener;
  auto newer = std::move(*server_->OpenApplyLog(sender_, &listener, kNoDeadline));
  EXPECT_EQ(listener_.closings.load(), 1);
  EXPECT_EQ(listener_.reason, ErrorCode::kCancelled);
  const LogBatch batch = log_.Put("a", "b").Take();
  EXPECT_EQ(Send(batch), ErrorCode::kCancelled);
  EXPECT_EQ(Read(*server_, sender_, "a").value, std::nullopt);
  EXPECT_TRUE(newer->Send(batch, kNoDeadline).ok());
  newer.reset();
  EXPECT_EQ(listener.closings.load(), 1);
  stream_.reset();
  EXPECT_EQ(listener_.closings.load(), 1);
}

TEST_F(DataComponentServerTest, MalformedBatchesCloseTheStreamAndMoveNothing) {
  Fill(5);
  Random random(3);
  const LogBatch good = log_.Put("a", "1").Put("b", "2").Delete("key100001").LowWater().Take();
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    LogBatch bad = good;
    switch (random.Below(3)) {
      case 0:
        bad.entries.resize(random.Below(bad.entries.size()));
        break;
      case 1:
        for (uint64_t n = random.Between(1, 4); n > 0; --n)
          bad.entries[random.Below(bad.entries.size())] = static_cast<char>(random.Next());
        break;
      default:
        bad.entries.insert(random.Below(bad.entries.size()),
                           std::string(random.Between(1, 40), static_cast<char>(random.Next())));
        break;
    }
    CountingListener listener;
    auto stream = std::move(*server_->OpenApplyLog(sender_, &listener, kNoDeadline));
    const Position before = server_->Hello(HelloOf(1), kNoDeadline)->applied;
    const Status status = stream->Send(bad, kNoDeadline);
    if (status.ok()) continue;
    ++refused;
    ASSERT_EQ(status, ErrorCode::kCorruption) << status.ToString();
    ASSERT_EQ(listener.closings.load(), 1);
    ASSERT_EQ(server_->Hello(HelloOf(1), kNoDeadline)->applied, before);
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(DataComponentServerTest, TablesPartitionsCounters) {
  Fill(3000);
  const auto cuts = server_->Partition(sender_, kTable, 8, kNoDeadline);
  ASSERT_TRUE(cuts.ok());
  EXPECT_EQ(cuts->size(), 7u);
  EXPECT_EQ(server_->Partition(sender_, TableId(99), 8, kNoDeadline).status(), ErrorCode::kNotFound);
  const auto tables = server_->Tables(sender_, kNoDeadline);
  ASSERT_TRUE(tables.ok());
  ASSERT_EQ(tables->size(), 1u);
  EXPECT_NEAR(static_cast<double>((*tables)[0].records), 3000, 600);
  std::map<std::string, uint64_t> counted = Counted();
  EXPECT_EQ(counted["incarnation"], 1u);
  EXPECT_EQ(counted["applied_commit_lsn"], log_.end().commit.value);
  EXPECT_EQ(counted["stable_commit_lsn"], 0u);
  EXPECT_EQ(counted["updates_applied"], 3001u);
  EXPECT_GT(counted["memory_bytes"], 3000u * 20);
  EXPECT_GT(counted["pages"], 20u);
}

TEST(DataComponentServerStartTest, RefusesWhatItCannotProve) {
  const auto storage = NewMemoryStorage(RealRuntime());
  StartServer(*storage);
  OpenOptions options;
  options.writable = true;
  const std::string path = SmallServer().directory + "/dc_state";
  auto file = std::move(*storage->Open(path, options));
  char byte = 0;
  ASSERT_TRUE(file->Read(30, &byte, 1).ok());
  byte = static_cast<char>(byte ^ 1);
  ASSERT_TRUE(file->Write(30, &byte, 1).ok());
  const auto refused = OpenServer(*storage);
  EXPECT_EQ(refused.status(), ErrorCode::kCorruption);
  EXPECT_NE(refused.status().message().find(path), std::string::npos) << refused.status().ToString();
  EXPECT_TRUE(*storage->Exists(path));
}

TEST(DataComponentServerMemoryTest, RecordsBeyondTheBudgetAreOnDisk) {
  const auto storage = NewMemoryStorage(RealRuntime());
  DataComponentOptions options = SmallServer();
  options.records.memory_bytes = 1 << 20;
  auto server = std::move(*DataComponentServer::Open(options, *storage, RealRuntime()));
  const Sender sender = SayHello(*server, 1);
  CountingListener listener;
  auto stream = std::move(*server->OpenApplyLog(sender, &listener, kNoDeadline));
  TestLog log;
  log.Create();
  for (int i = 0; i < 500; ++i) {
    log.Put(Concat("k", i), std::string(10000, 'v'));
    if (i % 10 == 9) ASSERT_TRUE(stream->Send(log.Take(), kNoDeadline).ok());
  }
  // While memory exceeds its budget, the DC may report no room; that ends.
  const Deadline end = RealRuntime().Now() + std::chrono::seconds(60);
  while (listener.last.free_bytes == 0 && RealRuntime().Now() < end) {
    log.Put("k0", std::string(10000, 'v'));
    ASSERT_TRUE(stream->Send(log.Take(), kNoDeadline).ok());
  }
  EXPECT_GT(listener.last.free_bytes, 0u);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(Read(*server, sender, Concat("k", i)).value, std::string(10000, 'v')) << i;
  }
  // Some records of one call are in memory, others are not.
  constexpr size_t kTogether = 25;
  for (size_t first = 0; first < 500; first += kTogether) {
    std::vector<DataRequest> requests(kTogether);
    std::vector<std::string> keys(kTogether);
    std::vector<DataRequest*> pointers;
    for (size_t i = 0; i < kTogether; ++i) {
      keys[i] = Concat("k", (first + i) * 37 % 500);
      requests[i].sender = sender;
      requests[i].table = kTable;
      requests[i].key = keys[i];
      pointers.push_back(&requests[i]);
    }
    server->Submit(pointers);
    for (size_t i = 0; i < kTogether; ++i) {
      ASSERT_TRUE(requests[i].done.Wait(RealRuntime(), kNoDeadline));
      ASSERT_TRUE(requests[i].status.ok()) << requests[i].status.ToString();
      ASSERT_EQ(requests[i].answer.size(), 1u) << keys[i];
      EXPECT_EQ(RecordBatch::Iterator(requests[i].answer).record().key, keys[i]);
    }
  }
}

}  // namespace
}  // namespace deut::dc
