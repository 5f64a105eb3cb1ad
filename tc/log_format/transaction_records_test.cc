#include "tc/log_format/transaction_records.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/transaction_id.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

TEST(TransactionRecordsTest, AChunkHasAtLeastOneUpdate) {
  const std::string value(5000, 'v');
  const std::vector<Update> updates = {Put(1, "a", value), Put(2, "b", value)};
  EXPECT_EQ(UpdatesOfChunk(updates, 100), 1u);
  EXPECT_EQ(UpdatesOfChunk(updates, 10040), 2u);
  EXPECT_FALSE(FootprintOf(absl::MakeConstSpan(updates).first(1), false, 100).has_chunks);
}

// A record's word has 32 bits for its length. The footprint must not be cut to them, because the log compares it with its
// limit. Only the lengths of keys and values are read, so the values need not exist.
TEST(TransactionRecordsTest, AFootprintBeyond32BitsIsNotTruncated) {
  constexpr uint64_t kBeyond = uint64_t{1} << 32;
  const std::string start("v");
  const std::string_view huge(start.data(), kBeyond);
  for (const bool named : {false, true}) {
    // In the commit record.
    const std::vector<Update> alone = {Put(1, "a", huge)};
    const Footprint commit = FootprintOf(alone, named, 100);
    EXPECT_GT(commit.commit_bytes, kBeyond);
    EXPECT_EQ(commit.largest_record, commit.commit_bytes);
    EXPECT_EQ(commit.log_bytes, commit.commit_bytes);
    EXPECT_GT(commit.disk_bytes, kBeyond);
    // In a chunk, below a small commit record.
    const std::vector<Update> first = {Put(1, "a", huge), Put(2, "b", "small")};
    const Footprint chunk = FootprintOf(first, named, 100);
    EXPECT_LT(chunk.commit_bytes, 200u);
    EXPECT_GT(chunk.largest_record, kBeyond);
    EXPECT_EQ(chunk.log_bytes, chunk.largest_record + chunk.commit_bytes);
  }
}

// The reserved bytes are exactly the appended bytes, for all sizes, with and without an id.
TEST(TransactionRecordsTest, TheFootprintIsWhatIsAppended) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  const RedoLogOptions options = SmallLog("/log");
  RecoveredLog recovered;
  const auto log = MustOpen(options, *storage, &recovered);
  uint64_t timestamp = 0;
  for (const size_t bytes : {0, 1, 7, 100, 1000, 2047, 2048, 2100, 6000}) {
    for (const uint32_t count : {1, 2, 3, 20, 61}) {
      for (const bool named : {false, true}) {
        const std::string value(bytes, 'v');
        std::vector<Update> updates;
        for (uint32_t i = 1; i <= count; ++i) updates.push_back(Put(i, "key", value));
        const Footprint footprint = FootprintOf(updates, named, options.chunk_bytes);
        const TransactionId id = named ? TransactionId{.high = 1, .low = 2} : TransactionId{};
        const AppendResult appended = log->AppendCommit(Timestamp(++timestamp), updates, {}, id);
        EXPECT_EQ(footprint.log_bytes, appended.end.value - appended.first.value) << bytes << " " << count;
        EXPECT_EQ(footprint.commit_bytes, appended.end.value - appended.lsn.value) << bytes << " " << count;
        EXPECT_EQ(footprint.has_chunks, appended.first != appended.lsn);
        EXPECT_GE(footprint.disk_bytes, BlockBytesFor(footprint.log_bytes));
        EXPECT_EQ(footprint.disk_bytes % kBlockAlignment, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace deut::tc
