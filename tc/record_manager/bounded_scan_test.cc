// Scans over key ranges whose records were deleted: the DC's answers hold no record, so the limits of records and
// bytes end no batch. A batch ends after a limited number of answers, and the scan goes on with the next one.
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "protocol/operation.h"
#include "protocol/record_batch.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/record_manager/pumped_dc.h"
#include "tc/scan/batch_room.h"

namespace deut::tc {
namespace {

constexpr int kKeys = 500;

std::string KeyOf(int i) { return "k" + std::to_string(1000 + i); }

class BoundedScanTest : public ::testing::Test {
 protected:
  // Only the last of the kKeys keys has a record. Each answer of the DC covers one key.
  BoundedScanTest() {
    std::vector<std::pair<std::string, std::string>> load;
    for (int i = 0; i < kKeys; ++i) load.push_back({KeyOf(i), i + 1 == kKeys ? "alive" : "deleted"});
    f_.Load(load);
    f_.SetRanges({KeyOf(kKeys / 2)});
    f_.dc->set_scan_records(1);
    f_.dc->AlterScans([](DataRequest* request) {
      const RecordBatch::Iterator first(request->answer);
      if (first.Valid() && first.record().value == "deleted") request->answer.Clear();
    });
    testing::SetPointHandler([this](std::string_view point) {
      if (point == "scan.before_dc") answers_.fetch_add(1);
    });
  }
  ~BoundedScanTest() override { testing::SetPointHandler(nullptr); }

  // Scans the rest in batches of limited work. Returns their number.
  int Rest(TestTransaction& t, Operation* scan, std::string* all) {
    int batches = 0;
    for (bool more = true; more && t.open(); ++batches) {
      answers_.store(0);
      *all += t.ScanBatch(scan, &more);
      EXPECT_LE(answers_.load(), kMaxStepsPerBatch);
      EXPECT_GT(answers_.load(), 0u);
    }
    return batches;
  }

  EngineFixture f_;
  std::atomic<size_t> answers_{0};  // that the scan has asked for
};

// The first batch asks request by request, the next ones by a stream, or also request by request.
TEST_F(BoundedScanTest, ABatchOverDeletedRecordsEndsAndTheNextGoesOn) {
  for (const bool streams : {true, false}) {
    f_.dc->set_refuses_scans(!streams);
    for (const bool for_update : {false, true}) {
      for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
        SCOPED_TRACE(::testing::Message() << streams << for_update << static_cast<int>(direction));
        TestTransaction t = f_.Begin();
        Operation scan{.direction = direction, .for_update = for_update};
        std::string all;
        EXPECT_GT(Rest(t, &scan, &all), 4);
        EXPECT_EQ(all, KeyOf(kKeys - 1) + "=alive");
        EXPECT_EQ(t.Commit(), "ok");
      }
    }
  }
}

// A limit of records does not make the scan go on for as long as it takes to find them.
TEST_F(BoundedScanTest, AScanWithALimitOfRecordsEndsItsBatches) {
  TestTransaction t = f_.Begin();
  Operation scan{.limit_records = 1};
  bool more = false;
  EXPECT_EQ(t.ScanBatch(&scan, &more), "");
  EXPECT_TRUE(more);
  std::string all;
  EXPECT_GT(Rest(t, &scan, &all), 3);
  EXPECT_EQ(all, KeyOf(kKeys - 1) + "=alive");
}

// A batch without records has read its part of the range: an earlier transaction may not write there any more. The
// part that the scan has not reached is free.
TEST_F(BoundedScanTest, ABatchWithoutRecordsIsARangeRead) {
  TestTransaction in_front = f_.Begin();
  TestTransaction behind = f_.Begin();
  TestTransaction t = f_.Begin();
  Operation scan{};
  bool more = false;
  EXPECT_EQ(t.ScanBatch(&scan, &more), "");
  ASSERT_TRUE(more);
  ASSERT_LT(scan.low, KeyOf(kKeys / 2));
  EXPECT_EQ(in_front.Put(KeyOf(3), "phantom"), "range-read-later");
  EXPECT_EQ(behind.Put(KeyOf(kKeys - 2), "earlier"), "ok");
  EXPECT_EQ(behind.Commit(), "ok");
  std::string all;
  Rest(t, &scan, &all);
  EXPECT_NE(all.find(KeyOf(kKeys - 2) + "=earlier"), std::string::npos) << all;
  EXPECT_NE(all.find(KeyOf(kKeys - 1) + "=alive"), std::string::npos) << all;
  EXPECT_EQ(t.Commit(), "ok");
}

// The removal of a range also works on limited parts, which may remove nothing.
TEST_F(BoundedScanTest, TheRemovalOfARangeGoesOnOverDeletedRecords) {
  TestTransaction t = f_.Begin();
  std::string low;
  uint32_t removed = 0;
  int batches = 0;
  for (bool complete = false; !complete; ++batches) {
    const Operation remove{.kind = OperationKind::kRemoveRange, .table = EngineFixture::kTable, .low = low};
    OperationResult result;
    ASSERT_TRUE(f_.manager->RemoveRange(t.transaction(), remove, &result, EngineFixture::Soon()).ok());
    removed += result.removed;
    complete = result.complete;
    if (complete) continue;
    ASSERT_GT(result.resume, low);
    low = result.resume;
  }
  EXPECT_EQ(removed, 1u);
  EXPECT_GT(batches, 4);
  EXPECT_EQ(t.Commit(), "ok");
}

// Every answer comes at once, so nothing but the check between two answers meets the deadline.
TEST_F(BoundedScanTest, ADeadlineEndsAScanBetweenTwoAnswers) {
  TestTransaction t = f_.Begin();
  const Operation scan{.kind = OperationKind::kScan, .table = EngineFixture::kTable};
  OperationResult result;
  EXPECT_EQ(f_.manager->Scan(t.transaction(), scan, &result, RealRuntime().Now()), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(answers_.load(), 1u);
}

}  // namespace
}  // namespace deut::tc
