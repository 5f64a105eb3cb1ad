#include "tc/redo_log/log_folder.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/segment_set.h"

namespace deut::tc {
namespace {

constexpr uint64_t kBytes = 64 << 10;

class LogFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(storage_->CreateDirectory("/log").ok()); }

  void MakeFile(uint64_t number, std::string_view begins) {
    const auto file = storage_->Open(PathOf(number), {.create = true, .writable = true});
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    ASSERT_TRUE((*file)->Allocate(kBytes).ok());
    ASSERT_TRUE((*file)->Write(0, begins.data(), begins.size()).ok());
  }

  // A log whose chain ends in segment 1, with the files 2 to 4 behind it. Segment 3 is damaged and not empty.
  RecoveredChain Found() {
    for (const uint64_t number : {1, 2, 4}) MakeFile(number, "x");
    MakeFile(3, std::string(5000, 'x'));
    RecoveredChain chain;
    chain.end = {.lsn = Lsn(800), .segment = 1, .offset = 2 * kSegmentHeaderBytes};
    chain.stale = {2, 3, 4};
    chain.damaged = {{.number = 3, .bytes = 8192}};
    chain.next_number = 2;
    return chain;
  }

  Status Prepare(const RecoveredChain& chain) {
    Result<std::unique_ptr<FileLock>> lock = storage_->Lock("/log/LOCK");
    EXPECT_TRUE(lock.ok()) << lock.status().ToString();
    (*lock)->RemoveWhenReleased(true);
    LogFolder folder(*storage_, "/log", std::move(*lock), chain);
    EXPECT_EQ(folder.empty(), chain.empty);
    EXPECT_EQ(folder.cut(), chain.end);
    SegmentSet segments(
        {.directory = "/log", .segment_bytes = kBytes, .spares = 1}, RealRuntime(), *storage_, {}, chain.next_number,
        [] {}, [](const Status&) {});
    const Status prepared = folder.Prepare(segments);
    EXPECT_EQ(segments.spare_count(), prepared.ok() ? 1u : 0u);
    return prepared;
  }

  static std::string PathOf(uint64_t number) { return "/log/" + SegmentName(number); }
  bool Exists(const std::string& path) { return *storage_->Exists(path); }
  uint64_t SizeOf(const std::string& path) { return *(*storage_->Open(path, {}))->Size(); }

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_ = disk_.Mount();
};

TEST_F(LogFolderTest, PrepareRemovesWhatIsBehindTheChainAndKeepsDamagedFilesByAnotherName) {
  const Status prepared = Prepare(Found());
  ASSERT_TRUE(prepared.ok()) << prepared.ToString();
  EXPECT_TRUE(Exists("/log/LOCK"));
  EXPECT_TRUE(Exists(PathOf(1)));
  EXPECT_EQ(SizeOf(PathOf(2)), kBytes) << "this start's first segment";
  EXPECT_FALSE(Exists(PathOf(3)) || Exists(PathOf(4)));
  const std::string kept = PathOf(3) + std::string(kDamagedSuffix);
  ASSERT_TRUE(Exists(kept));
  EXPECT_EQ(SizeOf(kept), 8192u) << "without the zeros at its end";
}

TEST_F(LogFolderTest, PrepareOnAFullDiskUsesTheSpaceBehindTheChain) {
  RecoveredChain chain = Found();
  chain.stale = {};
  chain.damaged = {};
  chain.next_number = 5;
  disk_.SetFreeBytes(0);
  const Status refused = Prepare(chain);
  EXPECT_TRUE(refused == ErrorCode::kResourceExhausted)
      << "a short segment needs more than that: " << refused.ToString();
  EXPECT_EQ(SizeOf(PathOf(1)), chain.end.offset) << "the reserve was given back all the same";
  disk_.SetFreeBytes(2 * kBytes);
  EXPECT_TRUE(Prepare(chain).ok()) << "it may be repeated";
}

TEST_F(LogFolderTest, AFolderThatWasNotPreparedIsAsItWas) {
  const RecoveredChain chain = Found();
  {
    Result<std::unique_ptr<FileLock>> lock = storage_->Lock("/log/LOCK");
    ASSERT_TRUE(lock.ok());
    (*lock)->RemoveWhenReleased(true);
    const LogFolder folder(*storage_, "/log", std::move(*lock), chain);
  }
  EXPECT_FALSE(Exists("/log/LOCK"));
  for (const uint64_t number : {1, 2, 3, 4}) EXPECT_EQ(SizeOf(PathOf(number)), kBytes);
}

}  // namespace
}  // namespace deut::tc
