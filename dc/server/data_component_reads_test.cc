// Point reads, short scans and bulk scans of a data component.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/scan_cursor.h"
#include "dc/page_store/hot_page_list.h"
#include "dc/server/data_component_server.h"
#include "dc/server/data_component_server_fixture.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

TEST_F(DataComponentServerTest, PointReadsInOneCall) {
  Fill(100);
  std::vector<DataRequest> requests(50);
  std::vector<std::string> keys(50);
  std::vector<DataRequest*> pointers;
  for (size_t i = 0; i < requests.size(); ++i) {
    keys[i] = Key(i * 3);
    requests[i].sender = sender_;
    requests[i].table = kTable;
    requests[i].key = keys[i];
    pointers.push_back(&requests[i]);
  }
  requests[7].sender.incarnation = DcIncarnation(99);
  requests[8].table = TableId(1234);
  requests[9].key = "";
  const std::string long_key(kMaxKeyBytes + 1, 'k');
  requests[10].key = long_key;
  server_->Submit(pointers);
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(requests[i].done.IsSet());
    EXPECT_EQ(requests[i].answered_by, server_->incarnation());
    const ErrorCode expected = i == 7              ? ErrorCode::kWrongIncarnation
                               : i == 8            ? ErrorCode::kNotFound
                               : i == 9 || i == 10 ? ErrorCode::kInvalidArgument
                                                   : ErrorCode::kOk;
    ASSERT_EQ(requests[i].status, expected) << i << " " << requests[i].status.ToString();
    EXPECT_EQ(requests[i].answer.size(), expected == ErrorCode::kOk && i * 3 < 100 ? 1u : 0u) << i;
  }
  EXPECT_NE(requests[10].status.message().find("4096"), std::string::npos);
  EXPECT_EQ(Counted()["reads"], 46u);
  server_->Abandon(pointers[0]);
  DataRequest never_submitted;
  server_->Abandon(&never_submitted);
}

// Several point reads, and other requests between them, on the reader's own thread.
TEST_F(DataComponentServerTest, DirectReadsOfSeveral) {
  Fill(100);
  const std::shared_ptr<DirectReads> reads = server_->OpenReads(sender_);
  ASSERT_NE(reads, nullptr);
  std::vector<DataRequest> requests(30);
  std::vector<std::string> keys(requests.size());
  std::vector<DataRequest*> pointers;
  for (size_t i = 0; i < requests.size(); ++i) {
    keys[i] = Key(i * 4);
    requests[i].table = kTable;
    requests[i].key = keys[i];
    pointers.push_back(&requests[i]);
  }
  requests[3].key = "";
  requests[4].table = TableId(1234);
  ShortScan scan(*this, Key(10), Key(20), Direction::kAscending, 4);
  pointers.insert(pointers.begin() + 7, &scan);
  const uint64_t before = Counted()["reads"];
  for (int round = 0; round < 2; ++round) {  // the requests are reused unchanged
    EXPECT_EQ(reads->TryAnswer(pointers), DirectReads::Answered::kAll);
    for (size_t i = 0; i < requests.size(); ++i) {
      const ErrorCode expected = i == 3 ? ErrorCode::kInvalidArgument : i == 4 ? ErrorCode::kNotFound : ErrorCode::kOk;
      ASSERT_EQ(requests[i].status, expected) << i << " " << requests[i].status.ToString();
      ASSERT_EQ(requests[i].answer.size(), expected == ErrorCode::kOk && i * 4 < 100 ? 1u : 0u) << i;
      if (requests[i].answer.size() == 1) EXPECT_EQ(RecordBatch::Iterator(requests[i].answer).record().key, keys[i]);
      EXPECT_FALSE(requests[i].done.IsSet());
    }
    EXPECT_EQ(scan.answer.size(), 4u);
  }
  EXPECT_EQ(Counted()["reads"], before + uint64_t{2} * 28);
}

// Pages that are not in memory: the requests report that they need the disk, run once, on a thread that reads from
// it, and are counted once.
TEST_F(DataComponentServerTest, ARequestThatNeedsTheDiskIsCountedOnce) {
  Fill(300);
  ASSERT_TRUE(server_->TakeCheckpoints(log_.end()).ok());
  stream_.reset();
  server_.reset();
  server_ = StartServer(*storage_);
  sender_ = SayHello(*server_, 1);
  const std::shared_ptr<DirectReads> reads = server_->OpenReads(sender_);
  std::vector<DataRequest> requests(3);
  std::vector<std::string> keys;
  for (const uint64_t i : {5, 150, 290}) keys.push_back(Key(i));
  ShortScan scan(*this, Key(200), Key(230), Direction::kAscending, 0);
  std::vector<DataRequest*> pointers = {&scan};
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].sender = sender_;
    requests[i].table = kTable;
    requests[i].key = keys[i];
    pointers.push_back(&requests[i]);
  }
  EXPECT_EQ(reads->TryAnswer(pointers), DirectReads::Answered::kSome);
  for (const DataRequest* const request : pointers) EXPECT_TRUE(request->missed_in_memory);
  std::map<std::string, uint64_t> counted = Counted();
  EXPECT_EQ(counted["reads"] + counted["scans"] + counted["records_returned"], 0u);
  server_->Submit(pointers);
  for (DataRequest* const request : pointers) {
    ASSERT_TRUE(request->done.Wait(RealRuntime(), kNoDeadline));
    EXPECT_TRUE(request->status.ok()) << request->status.ToString();
    EXPECT_FALSE(request->missed_in_memory);
  }
  EXPECT_EQ(scan.answer.size(), 30u);
  for (const DataRequest& request : requests) EXPECT_EQ(request.answer.size(), 1u);
  counted = Counted();
  EXPECT_EQ(counted["reads"], 3u);
  EXPECT_EQ(counted["scans"], 1u);
  EXPECT_EQ(counted["records_returned"], 33u);

  // A scan begins in memory and meets a page that is not.
  ShortScan half(*this, Key(225), Key(280), Direction::kAscending, 0);
  DataRequest* const one = &half;
  EXPECT_EQ(reads->TryAnswer(absl::MakeConstSpan(&one, 1)), DirectReads::Answered::kSome);
  server_->Submit(absl::MakeConstSpan(&one, 1));
  ASSERT_TRUE(half.done.Wait(RealRuntime(), kNoDeadline));
  EXPECT_EQ(half.answer.size(), 55u);
  counted = Counted();
  EXPECT_EQ(counted["scans"], 2u);
  EXPECT_EQ(counted["records_returned"], 88u);
  // The page is in memory by now.
  EXPECT_EQ(reads->TryAnswer(absl::MakeConstSpan(&one, 1)), DirectReads::Answered::kAll);
  EXPECT_EQ(half.answer.size(), 55u);
  EXPECT_EQ(Counted()["scans"], 3u);
}

TEST_F(DataComponentServerTest, ShortScansSayWhatTheyCover) {
  Fill(200);
  ShortScan request(*this, Key(10), Key(20), Direction::kAscending, 4);
  Submit(&request);
  EXPECT_EQ(KeysOf(request.answer), (std::vector<std::string>{Key(10), Key(11), Key(12), Key(13)}));
  EXPECT_FALSE(request.complete);
  EXPECT_EQ(request.covered, Key(14));

  ShortScan down(*this, Key(10), Key(20), Direction::kDescending, 4);
  Submit(&down);
  EXPECT_EQ(KeysOf(down.answer), (std::vector<std::string>{Key(19), Key(18), Key(17), Key(16)}));
  EXPECT_FALSE(down.complete);
  EXPECT_EQ(down.covered, Key(16));

  ShortScan all(*this, Key(10), Key(20), Direction::kAscending, 0);
  Submit(&all);
  EXPECT_EQ(all.answer.size(), 10u);
  EXPECT_TRUE(all.complete);

  // The answer holds at least one record, however small the limit.
  ShortScan tiny(*this, "", "", Direction::kDescending, 0, 1);
  Submit(&tiny);
  EXPECT_EQ(KeysOf(tiny.answer), (std::vector<std::string>{Key(199)}));

  ShortScan empty(*this, Key(20), Key(10), Direction::kAscending, 0);
  Submit(&empty);
  EXPECT_TRUE(empty.status.ok());
  EXPECT_TRUE(empty.complete);
  EXPECT_TRUE(empty.answer.empty());

  const std::string long_bound(kMaxBoundBytes + 1, 'x');
  ShortScan bad(*this, long_bound, "", Direction::kAscending, 0);
  Submit(&bad);
  EXPECT_EQ(bad.status, ErrorCode::kInvalidArgument);
  // A bound may be one byte longer than a key.
  const std::string longest(kMaxBoundBytes, 'x');
  ShortScan good(*this, "", longest, Direction::kAscending, 0);
  Submit(&good);
  EXPECT_EQ(good.answer.size(), 200u);
}

// Pages whose records were all deleted cost a scan time but add no records. An answer reads a limited number of them,
// and states how far it has come.
TEST(DataComponentServerScanTest, AScanOverEmptiedPagesAnswersWithoutRecords) {
  constexpr int kKeys = 20'000;
  DataComponentOptions options = SmallServer();
  options.records.merge_interval = std::chrono::hours(1);  // emptied pages stay
  const auto storage = NewMemoryStorage(RealRuntime());
  auto opened = DataComponentServer::Open(options, *storage, RealRuntime());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  DataComponentServer& dc = **opened;
  const Sender tc = SayHello(dc, 1);
  CountingListener listener;
  auto stream = dc.OpenApplyLog(tc, &listener, kNoDeadline);
  ASSERT_TRUE(stream.ok());
  const auto key = [](int i) { return Concat("key", 100'000 + i); };
  TestLog log;
  log.Create();
  for (int i = 0; i < kKeys; ++i) log.Put(key(i), std::string(100, 'v'));
  ASSERT_TRUE((*stream)->Send(log.Take(), kNoDeadline).ok());
  for (int i = 1; i + 1 < kKeys; ++i) log.Delete(key(i));
  log.LowWater();
  ASSERT_TRUE((*stream)->Send(log.Take(), kNoDeadline).ok());
  const uint64_t pages = Counter(dc, "pages");
  ASSERT_GT(pages, 1000u);
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    SCOPED_TRACE(static_cast<int>(direction));
    const bool ascending = direction == Direction::kAscending;
    std::string low, high;
    uint64_t answers = 0, empty = 0, records = 0;
    for (bool complete = false; !complete; ++answers) {
      ASSERT_LT(answers, pages) << "no progress";
      DataRequest request;
      request.kind = DataRequest::Kind::kScan;
      request.sender = tc;
      request.table = kTable;
      request.low = low;
      request.high = high;
      request.direction = direction;
      DataRequest* const requests[] = {&request};
      dc.Submit(requests);
      request.done.Wait(RealRuntime(), kNoDeadline);
      ASSERT_TRUE(request.status.ok()) << request.status.ToString();
      records += request.answer.size();
      complete = request.complete;
      if (complete) break;
      empty += request.answer.empty() ? 1 : 0;
      std::string& from = ascending ? low : high;
      ASSERT_TRUE(ascending ? request.covered > from : from.empty() || request.covered < from);
      from = request.covered;
    }
    EXPECT_EQ(records, 2u);
    EXPECT_GE(answers, 3u);
    EXPECT_GE(empty, 1u);
  }
}

TEST_F(DataComponentServerTest, S4BulkScansStayInsideTheGrant) {
  Fill(1000);
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    const bool ascending = direction == Direction::kAscending;
    SCOPED_TRACE(ascending);
    ScanSpec spec;
    spec.table = kTable;
    spec.range = KeyRange{Key(100), Key(900)};
    spec.direction = direction;
    spec.batch_bytes = 2000;
    auto scan = std::move(*server_->OpenScan(sender_, spec, kNoDeadline));
    ScanBatch batch;
    EXPECT_EQ(scan->Next(&batch, kNoDeadline), ErrorCode::kWrongState);  // there is no grant yet
    std::vector<std::string> keys;
    const std::string bounds[] = {ascending ? Key(300) : Key(700), ascending ? Key(300) + "x" : Key(699) + "x",
                                  ascending ? Key(650) : Key(350), ""};
    for (const std::string& bound : bounds) {
      ASSERT_TRUE(scan->Grant(bound, 1 << 20).ok());
      for (;;) {
        const Status status = scan->Next(&batch, kNoDeadline);
        if (status == ErrorCode::kWrongState) break;
        ASSERT_TRUE(status.ok()) << status.ToString();
        EXPECT_LE(batch.records.bytes().size(), 2000u);
        for (const std::string& key : KeysOf(batch.records)) {
          ASSERT_TRUE(spec.range.Contains(key));
          ASSERT_TRUE(bound.empty() || (ascending ? key < bound : key >= bound)) << key << " outside " << bound;
          ASSERT_TRUE(batch.complete || (ascending ? key < batch.covered : key >= batch.covered));
          keys.push_back(key);
        }
        if (batch.complete) break;
      }
      if (bound.empty()) {
        EXPECT_TRUE(batch.complete);
      } else {
        EXPECT_EQ(batch.covered, bound);
        EXPECT_FALSE(batch.complete);
      }
    }
    ASSERT_EQ(keys.size(), 800u);
    for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(keys[i], ascending ? Key(100 + i) : Key(899 - i));
    EXPECT_EQ(scan->Grant(ascending ? Key(5) : Key(950), 1), ErrorCode::kInvalidArgument);
  }
}

// Each batch reads fewer pages than a short scan.
TEST_F(DataComponentServerTest, ALongBulkScanMakesFewPagesWorthKeeping) {
  Fill(3000);
  ASSERT_TRUE(server_->TakeCheckpoints(log_.end()).ok());
  stream_.reset();
  server_.reset();
  DataComponentOptions options = SmallServer();
  options.records.fetch_hot_pages = true;  // lists the pages that are in memory at a checkpoint
  options.records.merge_interval = std::chrono::hours(1);
  server_ = std::move(*DataComponentServer::Open(options, *storage_, RealRuntime()));
  while (Counter(*server_, "hot_pages_fetching") != 0) RealRuntime().Yield();
  sender_ = SayHello(*server_, 1);
  stream_ = std::move(*server_->OpenApplyLog(sender_, &listener_, kNoDeadline));
  ScanSpec spec;
  spec.table = kTable;
  spec.batch_bytes = 2000;
  auto scan = std::move(*server_->OpenScan(sender_, spec, kNoDeadline));
  ASSERT_TRUE(scan->Grant("", 1 << 20).ok());
  ScanBatch batch;
  size_t records = 0;
  do {
    ASSERT_TRUE(scan->Next(&batch, kNoDeadline).ok());
    records += batch.records.size();
  } while (!batch.complete);
  EXPECT_EQ(records, 3000u);
  ASSERT_TRUE(Send(log_.Put(Key(0), "the checkpoint has something to do").Take()).ok());
  ASSERT_TRUE(server_->TakeCheckpoints(log_.end()).ok());
  const auto list = ReadHotPages(*storage_, Concat(options.directory, "/pages"));
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_LE(list->used.size(), ScanCursor::kPagesOfShortScan);
  EXPECT_GT(list->others.size(), 3 * ScanCursor::kPagesOfShortScan);
}

TEST_F(DataComponentServerTest, BulkScansStopAtTheGrantedBytes) {
  Fill(1000);
  ScanSpec spec;
  spec.table = kTable;
  auto scan = std::move(*server_->OpenScan(sender_, spec, kNoDeadline));
  ASSERT_TRUE(scan->Grant("", 500).ok());
  ScanBatch batch;
  size_t bytes = 0;
  while (scan->Next(&batch, kNoDeadline).ok()) bytes += batch.records.bytes().size();
  EXPECT_GT(bytes, 400u);
  EXPECT_LT(bytes, 600u);
  EXPECT_EQ(server_->OpenScan(sender_, ScanSpec{}, kNoDeadline).status(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace deut::dc
