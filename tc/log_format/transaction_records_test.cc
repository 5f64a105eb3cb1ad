#include "tc/log_format/transaction_records.h"

#include <gtest/gtest.h>

#include <string>
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
