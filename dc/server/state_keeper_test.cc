// The durable state of a running DC: the content of its file after a Hello, a checkpoint and a clean stop.
#include "dc/server/state_keeper.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/server/state_file.h"

namespace deut::dc {
namespace {

constexpr char kDirectory[] = "/data";

class StateKeeperTest : public ::testing::Test {
 protected:
  StateKeeperTest() {
    EXPECT_TRUE(storage_->CreateDirectory(kDirectory).ok());
    EXPECT_TRUE(StateFile(*storage_, kDirectory).Save(begin_).ok());
    keeper_ = std::make_unique<StateKeeper>(RealRuntime(), *storage_, kDirectory, begin_);
  }
  DcState OnDisk() { return *StateFile(*storage_, kDirectory).Load().value(); }

  const DcState begin_{.dc = DcId(7),
                       .number = IncarnationNumber(2),
                       .incarnation = DcIncarnation(99),
                       .fence = FenceState{TcId(5), TcEpoch(1), 11}};
  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<StateKeeper> keeper_;
};

TEST_F(StateKeeperTest, AHelloAndACheckpointAreDurableAtOnceAndKeepEachOther) {
  const FenceState fence{TcId(5), TcEpoch(2), 12};
  ASSERT_TRUE(keeper_->SetFence(fence, Lsn(1000)).ok());
  EXPECT_EQ(OnDisk().fence, fence);
  EXPECT_EQ(OnDisk().log_durable, Lsn(1000));
  ASSERT_TRUE(keeper_->RecordKept(CheckpointNumber(4)).ok());
  ASSERT_TRUE(keeper_->RecordKept(CheckpointNumber(3)).ok()) << "an older one changes nothing";
  EXPECT_EQ(OnDisk().oldest_kept, CheckpointNumber(4));
  EXPECT_EQ(OnDisk().fence, fence);
  EXPECT_EQ(OnDisk().incarnation, begin_.incarnation);
}

TEST_F(StateKeeperTest, ACleanStopWritesHowFarTheLogIsDurable) {
  for (const uint64_t lsn : {500, 900, 700}) keeper_->NoteLogDurable(Lsn(lsn));
  EXPECT_EQ(keeper_->log_durable(), Lsn(900)) << "it never goes back in one life of a TC";
  keeper_.reset();
  EXPECT_EQ(OnDisk().log_durable, Lsn(900));
}

TEST_F(StateKeeperTest, AnotherTcLifeBeginsWithItsOwnLog) {
  keeper_->NoteLogDurable(Lsn(900));
  ASSERT_TRUE(keeper_->SetFence({TcId(5), TcEpoch(2), 12}, Lsn(300)).ok());
  EXPECT_EQ(keeper_->log_durable(), Lsn(300));
  keeper_.reset();
  EXPECT_EQ(OnDisk().log_durable, Lsn(300));
}

}  // namespace
}  // namespace deut::dc
