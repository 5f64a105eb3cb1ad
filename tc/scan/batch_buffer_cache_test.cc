#include "tc/scan/batch_buffer_cache.h"

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

TEST(BatchBufferCacheTest, AKeptBufferIsUsedAgainAndEmpty) {
  RecordBatch batch = OfBytes(5000);
  const char* const buffer = batch.bytes().data();
  BatchBufferCache::Put(std::move(batch));
  const RecordBatch taken = BatchBufferCache::Get(4000);
  EXPECT_EQ(taken.bytes().data(), buffer);
  EXPECT_TRUE(taken.empty());
  EXPECT_EQ(taken.bytes().size(), 0u);
  EXPECT_EQ(taken.newest(), Timestamp{0});
  EXPECT_NE(BatchBufferCache::Get(4000).bytes().data(), buffer) << "taken by two";
}

TEST(BatchBufferCacheTest, ThereIsRoomForWhatIsAskedFor) {
  BatchBufferCache::Put(OfBytes(100));
  EXPECT_GE(BatchBufferCache::Get(10'000).bytes().capacity(), 10'000u);
}

TEST(BatchBufferCacheTest, TheLargerOfTwoIsKeptAndNoneThatIsTooLarge) {
  BatchBufferCache::Put(OfBytes(9000));
  BatchBufferCache::Put(OfBytes(100));
  BatchBufferCache::Put(OfBytes(BatchBufferCache::kMaxBytes + 1));
  const size_t kept = BatchBufferCache::Get(0).bytes().capacity();
  EXPECT_GE(kept, 9000u);
  EXPECT_LE(kept, BatchBufferCache::kMaxBytes);
}

TEST(BatchBufferCacheTest, EachThreadHasItsOwn) {
  RecordBatch batch = OfBytes(5000);
  const char* const buffer = batch.bytes().data();
  BatchBufferCache::Put(std::move(batch));
  RealRuntime().StartThread("other", [&] { EXPECT_NE(BatchBufferCache::Get(4000).bytes().data(), buffer); })->Join();
  EXPECT_EQ(BatchBufferCache::Get(4000).bytes().data(), buffer);
}

}  // namespace
}  // namespace deut::tc
