// Many requests at once on a data component whose pages do not fit into memory, on a disk that completes reads in any
// order. Some are abandoned, and the component ends while others wait. DEUT_SEED repeats the choices of the threads.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

constexpr uint64_t kRecords = 6000;
constexpr uint32_t kScanLimit = 30;

std::string Key(uint64_t i) { return Concat("key", 100000 + i); }
std::string Value(uint64_t i) { return Concat(std::string(200, 'v'), i); }

uint64_t SeedOfRun() {
  const char* const text = std::getenv("DEUT_SEED");
  const uint64_t seed = text == nullptr ? RealRuntime().RandomSeed() : std::strtoull(text, nullptr, 10);
  std::cout << "DEUT_SEED=" << seed << "\n";
  return seed;
}

// A request with the bytes that its views point to.
struct OwnRequest : DataRequest {
  std::string own_key;
  uint64_t from = 0;
  uint64_t to = 0;
  std::string own_low;
  std::string own_high;
};

class MissedRequestsStressTest : public ::testing::Test {
 protected:
  MissedRequestsStressTest() {
    options_.records.memory_bytes = 768 << 10;
    options_.records.loader.reads_in_flight = 12;
    options_.records.scrubber.bytes_per_second = 0;
    Open();
    CountingListener listener;
    TestLog log;
    auto stream = std::move(*dc_->OpenApplyLog(sender_, &listener, kNoDeadline));
    log.Create();
    for (uint64_t i = 0; i < kRecords; ++i) {
      log.Put(Key(i), Value(i));
      if (i % 500 == 499) EXPECT_TRUE(stream->Send(log.Take(), kNoDeadline).ok());
    }
    EXPECT_TRUE(dc_->TakeCheckpoints(log.end()).ok());
    stream.reset();
    dc_.reset();
    Open();
  }
  void Open() {
    auto opened = DataComponentServer::Open(options_, *storage_, RealRuntime());
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    dc_ = std::move(*opened);
    sender_ = SayHello(*dc_, 1);
  }

  std::unique_ptr<OwnRequest> NewRequest(Random* random) {
    auto request = std::make_unique<OwnRequest>();
    request->sender = sender_;
    request->table = kTable;
    request->from = random->Below(kRecords);
    if (random->OneIn(3)) {
      request->kind = DataRequest::Kind::kScan;
      request->to = std::min(request->from + 1 + random->Below(200), kRecords);
      request->own_low = Key(request->from);
      request->own_high = Key(request->to);
      request->low = request->own_low;
      request->high = request->own_high;
      request->direction = random->OneIn(2) ? Direction::kAscending : Direction::kDescending;
      request->limit_records = random->OneIn(2) ? kScanLimit : 0;
    } else {
      request->own_key = Key(request->from);
      request->key = request->own_key;
    }
    return request;
  }
  static void Check(const OwnRequest& request) {
    ASSERT_TRUE(request.status.ok()) << request.status.ToString();
    const bool is_scan = request.kind == DataRequest::Kind::kScan;
    const bool descending = is_scan && request.direction == Direction::kDescending;
    uint64_t number = descending ? request.to - 1 : request.from;
    size_t records = 0;
    for (RecordBatch::Iterator it(request.answer); it.Valid(); it.Next()) {
      ASSERT_EQ(it.record().key, Key(number));
      ASSERT_EQ(it.record().value, Value(number));
      number += descending ? -1 : 1;
      ++records;
    }
    if (!is_scan) {
      ASSERT_EQ(records, 1u);
    } else if (request.complete) {
      ASSERT_EQ(records, request.to - request.from);
    } else {
      ASSERT_GE(records, 1u);
      ASSERT_LE(records, request.limit_records == 0 ? kRecords : kScanLimit);
      // The answer covers the records that it has, and no other.
      const std::string& covered = request.covered;
      ASSERT_TRUE(descending ? covered <= Key(number + 1) && covered > Key(number)
                             : covered > Key(number - 1) && covered <= Key(number))
          << covered;
    }
  }

  void Work(uint64_t seed, uint64_t rounds) {
    Random random(seed);
    for (uint64_t round = 0; round < rounds; ++round) {
      std::vector<std::unique_ptr<OwnRequest>> requests;
      std::vector<DataRequest*> pointers;
      for (uint64_t i = random.Between(1, 12); i > 0; --i) {
        requests.push_back(NewRequest(&random));
        pointers.push_back(requests.back().get());
      }
      dc_->Submit(pointers);
      for (std::unique_ptr<OwnRequest>& request : requests) {
        if (random.OneIn(10)) {
          dc_->Abandon(request.get());
          request.reset();
          continue;
        }
        ASSERT_TRUE(request->done.Wait(RealRuntime(), kNoDeadline));
        Check(*request);
      }
    }
  }

  const uint64_t seed_ = SeedOfRun();
  DataComponentOptions options_ = SmallServer();
  FaultyDisk disk_{RealRuntime(), seed_};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  std::unique_ptr<DataComponentServer> dc_;
  Sender sender_;
};

TEST_F(MissedRequestsStressTest, EachRequestIsAnsweredOnceAndRight) {
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.push_back(RealRuntime().StartThread("works", [this, i] { Work(seed_ + i, 150); }));
  }
  threads.clear();
  EXPECT_GT(Counter(*dc_, "pages_loaded"), 500u);
  EXPECT_GT(Counter(*dc_, "pages_swapped_out"), 100u);
  EXPECT_EQ(Counter(*dc_, "pages_damaged"), 0u);
}

TEST_F(MissedRequestsStressTest, TheComponentEndsWhileRequestsWait) {
  Random random(seed_);
  for (int life = 0; life < 10; ++life) {
    disk_.HoldOperations(kDiskRead, ".seg");
    std::vector<std::unique_ptr<OwnRequest>> requests;
    std::vector<DataRequest*> pointers;
    for (int i = 0; i < 60; ++i) {
      requests.push_back(NewRequest(&random));
      pointers.push_back(requests.back().get());
    }
    dc_->Submit(pointers);
    std::vector<std::unique_ptr<OwnRequest>> kept;
    for (std::unique_ptr<OwnRequest>& request : requests) {
      if (random.OneIn(3)) {
        dc_->Abandon(request.get());
        request.reset();
      } else {
        kept.push_back(std::move(request));
      }
    }
    const auto end = RealRuntime().StartThread("end", [&] { dc_.reset(); });
    disk_.HoldOperations(0);
    end->Join();
    for (const std::unique_ptr<OwnRequest>& request : kept) {
      ASSERT_TRUE(request->done.IsSet());
      Check(*request);
    }
    Open();
  }
}

}  // namespace
}  // namespace deut::dc
