#include "dc/verify/data_directory.h"

#include <string>

#include "common/base/status.h"
#include "dc/verify/store_on_disk.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

const std::string kDirectory(StoreOnDisk::kDirectory);

TEST(DataDirectoryTest, FindsWhatIsThereAndChangesNothing) {
  StoreOnDisk store;
  store.Start();
  store.Fill(500);
  store.Replace(StoreOnDisk::PathOf("pages/checkpoint-000000000999.tmp"), "half");
  store.Replace(StoreOnDisk::PathOf("pages/readme"), "strange");
  const auto before = store.Bytes();
  {
    const auto opened = DataDirectory::Open(store.storage(), kDirectory);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    const DataDirectory& directory = **opened;
    EXPECT_EQ(directory.dc(), StoreOnDisk::kDc);
    ASSERT_EQ(directory.checkpoints().size(), 2u);
    EXPECT_GT(directory.checkpoints()[0], directory.checkpoints()[1]);
    ASSERT_FALSE(directory.segments().empty());
    for (size_t i = 1; i < directory.segments().size(); ++i) {
      EXPECT_LT(directory.segments()[i - 1].number, directory.segments()[i].number);
    }
    ASSERT_EQ(directory.left_over().size(), 1u);
    ASSERT_EQ(directory.foreign_files().size(), 1u);
    EXPECT_EQ(directory.foreign_files()[0], StoreOnDisk::PathOf("pages/readme"));
    // One process at a time holds the directory.
    EXPECT_EQ(DataDirectory::Open(store.storage(), kDirectory).status(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(store.Bytes(), before);
  EXPECT_TRUE(DataDirectory::Open(store.storage(), kDirectory).ok());
}

TEST(DataDirectoryTest, RefusesWhatIsNoDirectoryOfADataComponent) {
  StoreOnDisk store;
  ASSERT_TRUE(store.storage().CreateDirectory("/other").ok());
  EXPECT_EQ(DataDirectory::Open(store.storage(), "/other").status(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(DataDirectory::Open(store.storage(), "/nowhere").ok());
}

}  // namespace
}  // namespace deut::dc
