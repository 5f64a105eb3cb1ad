#include "common/io/folder_owner.h"

#include <memory>
#include <string>
#include <vector>

#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr FolderOwner kTc = {FolderKind::kTransactionComponent,
                             [](std::string_view name) { return name == "LOCK" || name.starts_with("log-"); }};
constexpr FolderOwner kDc = {FolderKind::kDataComponent,
                             [](std::string_view name) { return name == "lock" || name == "pages"; }};

class FolderOwnerTest : public ::testing::Test {
 protected:
  void Make(const std::string& name, const std::string& content = "") {
    ASSERT_TRUE(storage_->CreateDirectory("/d").ok());
    auto file = storage_->Open("/d/" + name, {.create = true, .writable = true});
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    ASSERT_TRUE((*file)->Truncate(0).ok());
    ASSERT_TRUE((*file)->Write(0, content.data(), content.size()).ok());
  }
  Status Claim(const FolderOwner& owner) { return ClaimFolder(*storage_, "/d", owner); }
  Status Check(const FolderOwner& owner) { return CheckFolder(*storage_, "/d", owner); }

  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
};

TEST_F(FolderOwnerTest, AClaimedFolderIsRefusedByAnotherKind) {
  ASSERT_TRUE(storage_->CreateDirectory("/d").ok());
  ASSERT_TRUE(Claim(kDc).ok());
  EXPECT_TRUE(Claim(kDc).ok());
  EXPECT_TRUE(Check(kDc).ok());
  for (const Status& refused : {Check(kTc), Claim(kTc)}) {
    EXPECT_EQ(refused.code(), ErrorCode::kWrongState);
    EXPECT_THAT(refused.ToString(), HasSubstr("/d is the folder of a data component (dcd)"));
  }
  EXPECT_THAT(*storage_->List("/d"), ElementsAre("OWNER"));
}

TEST_F(FolderOwnerTest, AFolderThatIsAbsentOrEmptyPassesAndIsNotMade) {
  EXPECT_TRUE(Check(kTc).ok());
  EXPECT_FALSE(*storage_->Exists("/d"));
  ASSERT_TRUE(storage_->CreateDirectory("/d").ok());
  EXPECT_TRUE(Check(kTc).ok());
  EXPECT_THAT(*storage_->List("/d"), IsEmpty());
  ASSERT_TRUE(storage_->CreateDirectory("/d/lost+found").ok());
  EXPECT_TRUE(Check(kTc).ok());
}

TEST_F(FolderOwnerTest, AFolderFromBeforeThereWasAnOwnerIsItsMakers) {
  Make("LOCK");
  Make("log-1");
  EXPECT_EQ(Check(kDc).code(), ErrorCode::kWrongState);
  EXPECT_TRUE(Claim(kTc).ok());
  EXPECT_THAT(*storage_->List("/d"), ElementsAre("LOCK", "OWNER", "log-1"));
}

TEST_F(FolderOwnerTest, AFolderWithUnknownFilesIsRefused) {
  Make("holiday.jpg");
  const Status refused = Claim(kTc);
  EXPECT_EQ(refused.code(), ErrorCode::kWrongState);
  EXPECT_THAT(refused.ToString(), HasSubstr("\"holiday.jpg\""));
  EXPECT_THAT(*storage_->List("/d"), ElementsAre("holiday.jpg"));
  // Beside an OWNER, unknown files are ignored.
  Make("OWNER", EncodeFolderOwner(FolderKind::kTransactionComponent));
  EXPECT_TRUE(Claim(kTc).ok());
}

TEST_F(FolderOwnerTest, ACrashDuringTheClaimIsNoOwner) {
  Make("OWNER.new", "DEUT");
  EXPECT_TRUE(Claim(kTc).ok());
  EXPECT_THAT(*storage_->List("/d"), ElementsAre("OWNER"));
}

TEST_F(FolderOwnerTest, DamageAndOtherVersionsAreRefusedByName) {
  const std::string good = EncodeFolderOwner(FolderKind::kDataComponent);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    Make("OWNER", bad);
    const Status refused = Claim(kDc);
    EXPECT_EQ(refused.code(), ErrorCode::kCorruption) << at << ": " << refused.ToString();
    EXPECT_THAT(refused.ToString(), HasSubstr("/d/OWNER"));
  }
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    Make("OWNER", good.substr(0, bytes));
    EXPECT_EQ(Claim(kDc).code(), ErrorCode::kCorruption) << bytes;
  }
  Make("OWNER", good + "x");
  EXPECT_EQ(Claim(kDc).code(), ErrorCode::kCorruption);
  // Bytes as a later program would write them, perhaps with more behind them.
  std::string later = good.substr(0, 20);
  StoreU32(later.data() + 8, 2);
  AppendU32(&later, Crc32c(later));
  for (const std::string& bytes : {later, later + "more"}) {
    Make("OWNER", bytes);
    const Status refused = Claim(kDc);
    EXPECT_EQ(refused.code(), ErrorCode::kVersionMismatch) << refused.ToString();
    EXPECT_THAT(refused.ToString(), HasSubstr("/d/OWNER: format version 2, this program knows 1"));
  }
}

// The bytes of today's format: a later program has to understand them, or refuse them with an error.
TEST_F(FolderOwnerTest, TheFormatStaysAsItIs) {
  EXPECT_EQ(EncodeFolderOwner(FolderKind::kTransactionComponent).substr(0, 20),
            std::string("DEUTOWNR\1\0\0\0\1\0\0\0\0\0\0\0", 20));
}

}  // namespace
}  // namespace deut
