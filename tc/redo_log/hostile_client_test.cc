#include "tc/redo_log/hostile_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/log_test_util.h"

namespace deut::tc {
namespace {

// D2: recovery never takes a client's value for a block of the log, although it reads reused files and looks past the
// end of the chain. Each round commits false blocks, frees and reuses segments, stops cleanly, and starts again.
TEST(HostileClientTest, D2ValuesShapedLikeBlocksAreNoBlocks) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
    HostileClient client(*storage, "/log");
    RedoLogOptions options = SmallLog("/log");
    options.spare_segments = 1;
    std::vector<uint64_t> since_redo_start;
    RecoveredLog recovered;
    for (int life = 0; life < 2; ++life) {
      const std::unique_ptr<RedoLog> log = MustOpen(options, *storage, &recovered);
      ASSERT_NE(log, nullptr);
      EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn)), since_redo_start);
      for (uint64_t i = 0; i < 40; ++i) {
        const uint64_t timestamp = recovered.first_timestamp.value + i;
        client.Commit(*log, timestamp, {.segments_ahead = random.Below(4)});
        since_redo_start.push_back(timestamp);
        if (i % 8 != 7) continue;
        ASSERT_TRUE(log->AdvanceRedoStart({.lsn = log->durable(), .stable = {}}, kNoDeadline).ok());
        since_redo_start.clear();
      }
    }
    const std::unique_ptr<RedoLog> log = MustOpen(options, *storage, &recovered);
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn)), since_redo_start);
  }
}

}  // namespace
}  // namespace deut::tc
