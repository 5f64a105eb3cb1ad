#include "dc/page_store/checkpoint_set.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_fixture.h"

namespace deut::dc {
namespace {

class CheckpointSetTest : public ::testing::Test {
 protected:
  CheckpointSetTest() : disk_(RealRuntime(), 1), storage_(disk_.Mount()) {
    EXPECT_TRUE(storage_->CreateDirectory("/dc").ok());
    EXPECT_TRUE(storage_->SyncDirectory("/").ok());
  }

  std::unique_ptr<CheckpointSet> Open(uint64_t opened) {
    auto set = CheckpointSet::Open(*storage_, "/dc", DcId(0xDC), CheckpointNumber(opened));
    EXPECT_TRUE(set.ok()) << set.status().ToString();
    return std::move(*set);
  }

  Status Checkpoint(CheckpointSet& set) {
    const CheckpointContent content = ContentWith(set.next().value, 3);
    DEUT_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(*storage_, "/dc", content.head));
    DEUT_RETURN_IF_ERROR(AddAll(*writer, content));
    return set.Complete(std::move(writer));
  }

  std::vector<uint64_t> Found() {
    std::vector<uint64_t> numbers;
    const auto found = FindCheckpoints(*storage_, "/dc");
    for (const CheckpointNumber number : *found) numbers.push_back(number.value);
    return numbers;
  }

  bool Reads(uint64_t number) {
    return ReadCheckpoint(*storage_, "/dc", CheckpointNumber(number), DcId(0xDC), nullptr).ok();
  }

  void Touch(const std::string& name) {
    ASSERT_TRUE(storage_->Open("/dc/" + name, {.create = true, .writable = true}).ok());
  }

  FaultyDisk disk_;
  std::unique_ptr<Storage> storage_;
};

TEST_F(CheckpointSetTest, TwoGenerationsAreKept) {
  auto set = Open(0);
  EXPECT_EQ(set->next(), CheckpointNumber(1));
  EXPECT_EQ(set->newest(), CheckpointNumber(0));
  const std::vector<std::vector<uint64_t>> kept = {{1}, {2, 1}, {3, 2}, {4, 3}};
  for (uint64_t k = 1; k <= 4; ++k) {
    ASSERT_TRUE(Checkpoint(*set).ok());
    EXPECT_EQ(Found(), kept[k - 1]);
    EXPECT_EQ(set->newest().value, k);
    EXPECT_EQ(set->oldest_kept().value, kept[k - 1].back());
    EXPECT_EQ(set->next().value, k + 1);
  }
}

TEST_F(CheckpointSetTest, TheOpenedCheckpointIsKeptUntilTwoNewerOnesAreComplete) {
  {
    auto set = Open(0);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Checkpoint(*set).ok());
  }
  // As if 3 could not be read; the next number is above it all the same.
  auto set = Open(2);
  EXPECT_EQ(set->next(), CheckpointNumber(4));
  Touch("checkpoint-000000000009.tmp");
  Touch("other");
  EXPECT_EQ(Found(), (std::vector<uint64_t>{3, 2}));
  ASSERT_TRUE(Checkpoint(*set).ok());
  EXPECT_EQ(Found(), (std::vector<uint64_t>{4, 2}));
  EXPECT_EQ(set->oldest_kept(), CheckpointNumber(2));
  EXPECT_FALSE(*storage_->Exists("/dc/checkpoint-000000000009.tmp"));
  EXPECT_TRUE(*storage_->Exists("/dc/other"));
  ASSERT_TRUE(Checkpoint(*set).ok());
  EXPECT_EQ(Found(), (std::vector<uint64_t>{5, 4}));
}

// Segments that only this checkpoint names are removed right after it.
TEST_F(CheckpointSetTest, APassedOverCheckpointIsGoneForGoodOnceTheNextOneIsComplete) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    {
      auto set = Open(0);
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(Checkpoint(*set).ok());
    }
    {
      auto set = Open(2);
      ASSERT_TRUE(Checkpoint(*set).ok());
    }
    disk_.Crash(seed);
    storage_ = disk_.Mount();
    EXPECT_EQ(Found(), (std::vector<uint64_t>{4, 2})) << seed;
    for (const uint64_t number : Found()) {
      ASSERT_TRUE(storage_->Remove("/dc/" + std::string(CheckpointName(CheckpointNumber(number)))).ok());
    }
    ASSERT_TRUE(storage_->SyncDirectory("/dc").ok());
  }
}

// A damaged file newer than the opened one loses only its name.
TEST_F(CheckpointSetTest, UnrecognizedFilesAreNotRemoved) {
  {
    auto set = Open(0);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Checkpoint(*set).ok());
  }
  const auto overwrite = [&](const std::string& name) {
    const auto file = storage_->Open("/dc/" + name, {.create = true, .writable = true});
    ASSERT_TRUE((*file)->Write(0, "something else", 14).ok());
  };
  overwrite("checkpoint-000000000001");
  overwrite("checkpoint-000000000003");
  overwrite("checkpoint-000000000008.tmp");
  auto set = Open(2);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Checkpoint(*set).ok());
  EXPECT_EQ(Found(), (std::vector<uint64_t>{10, 9, 1}));
  EXPECT_TRUE(*storage_->Exists("/dc/checkpoint-000000000003.damaged"));
  EXPECT_TRUE(*storage_->Exists("/dc/checkpoint-000000000008.tmp"));
}

// A start cannot read them as this folder's, so it passes them over. But they are whole, and belong to another
// folder.
TEST_F(CheckpointSetTest, AWholeCheckpointOfAnotherDcOrNumberMakesOpenRefuse) {
  auto set = Open(0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Checkpoint(*set).ok());
  const auto refused = [&](const std::string& name) {
    const Status status = CheckpointSet::Open(*storage_, "/dc", DcId(0xDC), CheckpointNumber(2)).status();
    EXPECT_EQ(status.code(), ErrorCode::kCorruption) << name;
    for (const std::string& part : {name, std::string("files of two folders are mixed; nothing was changed")})
      EXPECT_NE(status.message().find(part), std::string::npos) << status.ToString();
  };
  const auto write = [&](DcId dc, uint64_t number) {
    CheckpointContent content = ContentWith(number, 3);
    content.head.dc = dc;
    auto writer = CheckpointWriter::Create(*storage_, "/dc", content.head);
    EXPECT_TRUE(AddAll(**writer, content).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
  };
  const std::string name(CheckpointName(CheckpointNumber(4)));
  write(DcId(0xDD), 4);
  refused(name);
  ASSERT_TRUE(storage_->Rename("/dc/" + name, "/dc/" + name + ".tmp").ok());
  refused(name + ".tmp");
  // A checkpoint of this DC, under the name of another number.
  write(DcId(0xDC), 5);
  ASSERT_TRUE(storage_->Rename("/dc/" + std::string(CheckpointName(CheckpointNumber(5))), "/dc/" + name + ".tmp").ok());
  refused(name + ".tmp");
  ASSERT_TRUE(storage_->Remove("/dc/" + name + ".tmp").ok());
  EXPECT_EQ(Open(2)->next(), CheckpointNumber(4));
}

TEST_F(CheckpointSetTest, AFileWithTheHighestNumberMakesOpenRefuse) {
  {
    auto set = Open(0);
    ASSERT_TRUE(Checkpoint(*set).ok());
  }
  Touch("checkpoint-ffffffffffff.tmp");
  const Status status = CheckpointSet::Open(*storage_, "/dc", DcId(0xDC), CheckpointNumber(1)).status();
  EXPECT_EQ(status.code(), ErrorCode::kCorruption);
  EXPECT_NE(status.message().find("/dc/checkpoint-ffffffffffff.tmp"), std::string::npos) << status.ToString();
  EXPECT_TRUE(*storage_->Exists("/dc/checkpoint-ffffffffffff.tmp"));
  ASSERT_TRUE(storage_->Remove("/dc/checkpoint-ffffffffffff.tmp").ok());
  EXPECT_EQ(Open(1)->next(), CheckpointNumber(2));
}

TEST_F(CheckpointSetTest, AnUnfinishedOneUsesItsNumberUp) {
  Touch("checkpoint-000000000009.tmp");
  EXPECT_EQ(Open(0)->next(), CheckpointNumber(10));
}

TEST_F(CheckpointSetTest, NothingIsRemovedWhileNoneWasRead) {
  auto set = Open(0);
  ASSERT_TRUE(Checkpoint(*set).ok());
  EXPECT_EQ(CheckpointSet::Open(*storage_, "/dc", DcId(0xDC), CheckpointNumber(0)).status().code(),
            ErrorCode::kCorruption);
  EXPECT_EQ(CheckpointSet::Open(*storage_, "/dc", DcId(0xDC), CheckpointNumber(2)).status().code(),
            ErrorCode::kCorruption);
  EXPECT_EQ(Found(), (std::vector<uint64_t>{1}));
}

TEST_F(CheckpointSetTest, AFailedOneRemovesNothingAndIsTriedAgain) {
  auto set = Open(0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Checkpoint(*set).ok());
  disk_.AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite, .count = 1});
  EXPECT_EQ(Checkpoint(*set).code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(Found(), (std::vector<uint64_t>{3, 2}));
  EXPECT_EQ(set->next(), CheckpointNumber(4));
  // A checkpoint that reads back wrong does not count.
  disk_.AddFault({.action = DiskFault::Action::kFlipBit, .kinds = kDiskWrite, .count = 1});
  EXPECT_EQ(Checkpoint(*set).code(), ErrorCode::kCorruption);
  EXPECT_EQ(Found(), (std::vector<uint64_t>{3, 2}));
  ASSERT_TRUE(Checkpoint(*set).ok());
  EXPECT_EQ(Found(), (std::vector<uint64_t>{4, 3}));
}

TEST_F(CheckpointSetTest, AFileThatCannotBeRemovedGoesTheNextTime) {
  auto set = Open(0);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Checkpoint(*set).ok());
  // The third name operation is the removal; create and rename come before it.
  disk_.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskName, .skip = 2, .count = 1});
  ASSERT_TRUE(Checkpoint(*set).ok());
  EXPECT_EQ(Found(), (std::vector<uint64_t>{3, 2, 1}));
  EXPECT_EQ(set->oldest_kept(), CheckpointNumber(2));
  ASSERT_TRUE(Checkpoint(*set).ok());
  EXPECT_EQ(Found(), (std::vector<uint64_t>{4, 3}));
}

// A process that ended between the rename and the sync of the directory leaves a checkpoint that the next one opens.
// Once the DC has reported it as stable, a loss of power must not remove it.
TEST(CheckpointSetCrashTest, TheOpenedCheckpointIsDurable) {
  const CheckpointContent first = ContentWith(1, 3), second = ContentWith(2, 3);
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    const auto complete = [&](Storage& storage, CheckpointSet& set, const CheckpointContent& content) {
      auto writer = std::move(*CheckpointWriter::Create(storage, "/dc", content.head));
      EXPECT_TRUE(AddAll(*writer, content).ok());
      return set.Complete(std::move(writer));
    };
    {
      const auto storage = disk.Mount();
      ASSERT_TRUE(storage->CreateDirectory("/dc").ok());
      const auto set = std::move(*CheckpointSet::Open(*storage, "/dc", DcId(0xDC), CheckpointNumber(0)));
      ASSERT_TRUE(complete(*storage, *set, first).ok());
      disk.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskSyncDirectory, .count = 1});
      EXPECT_EQ(complete(*storage, *set, second).code(), ErrorCode::kIoError);
    }
    {
      const auto storage = disk.Mount();
      ASSERT_EQ(FindCheckpoints(*storage, "/dc")->front(), CheckpointNumber(2));
      ASSERT_TRUE(CheckpointSet::Open(*storage, "/dc", DcId(0xDC), CheckpointNumber(2)).ok());
    }
    disk.Crash(seed);
    const auto storage = disk.Mount();
    const auto found = FindCheckpoints(*storage, "/dc");
    ASSERT_TRUE(found.ok() && !found->empty());
    ASSERT_EQ(found->front(), CheckpointNumber(2)) << "seed " << seed;
    EXPECT_TRUE(ReadCheckpoint(*storage, "/dc", CheckpointNumber(2), DcId(0xDC), nullptr).ok());
  }
}

// Power is lost at every operation: the checkpoint found is complete, and not older than the last completed one.
TEST(CheckpointSetCrashTest, AtEveryOperation) {
  std::vector<CheckpointContent> contents;
  for (uint64_t number = 1; number <= 4; ++number) contents.push_back(ContentWith(number, 2000));
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (uint64_t crash_at = 1;; ++crash_at) {
      FaultyDisk disk(RealRuntime(), seed * 1000 + crash_at);
      uint64_t completed = 0;
      {
        const auto storage = disk.Mount();
        ASSERT_TRUE(storage->CreateDirectory("/dc").ok());
        disk.CrashAfter(crash_at);
        auto set = std::move(*CheckpointSet::Open(*storage, "/dc", DcId(0xDC), CheckpointNumber(0)));
        for (const CheckpointContent& content : contents) {
          auto writer = CheckpointWriter::Create(*storage, "/dc", content.head);
          if (!writer.ok() || !AddAll(**writer, content).ok() || !set->Complete(std::move(*writer)).ok()) break;
          completed = content.head.number.value;
        }
      }
      const bool crashed = disk.crashes() > 0;
      disk.CrashAfter(0);
      if (!crashed) disk.Crash(seed);
      const auto storage = disk.Mount();
      const std::vector<CheckpointNumber> found = *FindCheckpoints(*storage, "/dc");
      EXPECT_LE(found.size(), 4u);
      for (const CheckpointNumber number : found) {
        const auto read = ReadCheckpoint(*storage, "/dc", number, DcId(0xDC), nullptr);
        ASSERT_TRUE(read.ok()) << read.status().ToString();
        EXPECT_EQ(read->pages, 2002u);
      }
      ASSERT_GE(found.empty() ? 0 : found.front().value, completed) << "seed " << seed << " crash at " << crash_at;
      if (completed > 1) {
        // The generation before it is there, too.
        ASSERT_GE(found.size(), 2u) << "seed " << seed << " crash at " << crash_at;
      }
      if (!crashed) break;
    }
  }
}

}  // namespace
}  // namespace deut::dc
