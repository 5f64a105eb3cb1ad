#include "tc/record_manager/spare_batch.h"

#include <memory>
#include <string>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

RecordBatch OfBytes(size_t bytes) {
  RecordBatch batch;
  batch.Append("k", std::string(bytes, 'v'), Version{Timestamp{7}, 1});
  return batch;
}

TEST(SpareBatchTest, AKeptBufferIsUsedAgainAndEmpty) {
  RecordBatch batch = OfBytes(5000);
  const char* const buffer = batch.bytes().data();
  SpareBatch::Keep(std::move(batch));
  const RecordBatch taken = SpareBatch::Take(4000);
  EXPECT_EQ(taken.bytes().data(), buffer);
  EXPECT_TRUE(taken.empty());
  EXPECT_EQ(taken.bytes().size(), 0u);
  EXPECT_EQ(taken.newest(), Timestamp{0});
  EXPECT_NE(SpareBatch::Take(4000).bytes().data(), buffer) << "taken by two";
}

TEST(SpareBatchTest, ThereIsRoomForWhatIsAskedFor) {
  SpareBatch::Keep(OfBytes(100));
  EXPECT_GE(SpareBatch::Take(10'000).bytes().capacity(), 10'000u);
}

TEST(SpareBatchTest, TheLargerOfTwoIsKeptAndNoneThatIsTooLarge) {
  SpareBatch::Keep(OfBytes(9000));
  SpareBatch::Keep(OfBytes(100));
  SpareBatch::Keep(OfBytes(SpareBatch::kMostBytes + 1));
  const size_t kept = SpareBatch::Take(0).bytes().capacity();
  EXPECT_GE(kept, 9000u);
  EXPECT_LE(kept, SpareBatch::kMostBytes);
}

TEST(SpareBatchTest, EachThreadHasItsOwn) {
  RecordBatch batch = OfBytes(5000);
  const char* const buffer = batch.bytes().data();
  SpareBatch::Keep(std::move(batch));
  RealRuntime().StartThread("other", [&] { EXPECT_NE(SpareBatch::Take(4000).bytes().data(), buffer); })->Join();
  EXPECT_EQ(SpareBatch::Take(4000).bytes().data(), buffer);
}

}  // namespace
}  // namespace deut::tc
