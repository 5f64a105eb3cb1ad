// Checkpoints in which every checksum is right, but whose pages contradict one another. A start refuses them, changes
// nothing, and ends in order.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/page_image.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/segment_store.h"
#include "dc/store/record_store.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr DcId kDc{7};

// Writes images under ids as a checkpoint, and starts from it.
class HostileCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(storage_->CreateDirectory("/pages").ok());
    store_ = std::move(*SegmentStore::Create(*storage_, RealRuntime(), "/pages", kDc, SegmentStoreOptions()));
    appender_ = std::move(*store_->NewAppender(SegmentKind::kBase));
  }

  struct Child {
    std::string_view separator;
    uint32_t id;
  };
  // Adds an inner page that covers all keys, as the image of the next page id.
  void Inner(uint8_t level, const std::vector<Child>& children) {
    BasePage::Content content;
    for (const Child& child : children) {
      PageEntry entry;
      entry.data = child.separator.data();
      entry.key_bytes = static_cast<uint16_t>(child.separator.size());
      entry.child = PageId(child.id);
      content.Add(entry);
    }
    Page(*BasePage::Build(level, {}, Timestamp(), content));
  }
  void Leaf() { Page(*BasePage::Build(0, {}, Timestamp(), {})); }
  void Page(const BasePage& page) {
    std::string image;
    EncodeBaseImage(page, &image);
    const PartHeader header{.kind = PartKind::kBase,
                            .level = page.level,
                            .page = PageId(static_cast<uint32_t>(parts_.size() + 1)),
                            .table = TableId(1)};
    parts_.push_back(*appender_->Append(header, image));
  }

  Status Start(const std::vector<uint32_t>& roots) {
    EXPECT_TRUE(appender_->Write().ok());
    store_->BeginCheckpoint(CheckpointNumber(1));
    const std::vector<SegmentExtent> segments = *store_->SyncAll(CheckpointNumber(1));
    CheckpointHead head;
    head.number = CheckpointNumber(1);
    head.dc = kDc;
    head.next_page = PageId(static_cast<uint32_t>(parts_.size() + 1));
    head.next_segment = store_->next_segment();
    auto writer = std::move(*CheckpointWriter::Create(*storage_, "/pages", head));
    for (size_t i = 0; i < roots.size(); ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      EXPECT_TRUE(writer->AddTable({TableId(static_cast<uint32_t>(i + 1)), PageId(roots[i]), name}).ok());
    }
    for (const SegmentExtent& segment : segments) EXPECT_TRUE(writer->AddSegment(segment).ok());
    for (size_t i = 0; i < parts_.size(); ++i) {
      EXPECT_TRUE(writer->AddPage(PageId(static_cast<uint32_t>(i + 1)), {&parts_[i], 1}).ok());
    }
    EXPECT_TRUE(writer->Finish().ok());
    appender_.reset();
    store_.reset();
    const std::vector<std::string> before = *storage_->List("/pages");
    const RecordStore::Location home{*storage_, "/pages", kDc, DcIncarnation(2)};
    const Status status = RecordStore::Open(RealRuntime(), home, RecordStoreOptions()).status();
    EXPECT_EQ(*storage_->List("/pages"), before);
    return status;
  }

  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<SegmentStore> store_;
  std::unique_ptr<SegmentAppender> appender_;
  std::vector<PageAddress> parts_;
};

TEST_F(HostileCheckpointTest, ARightOneIsTaken) {
  Inner(1, {{"", 2}, {"m", 3}});
  Leaf();
  Leaf();
  EXPECT_EQ(Start({1}).ToString(), "OK");
}

TEST_F(HostileCheckpointTest, APageNamedTwiceByOnePage) {
  Inner(1, {{"", 2}, {"m", 2}});
  Leaf();
  EXPECT_EQ(Start({1}), ErrorCode::kCorruption);
}

TEST_F(HostileCheckpointTest, APageNamedByTwoTables) {
  Inner(1, {{"", 2}, {"m", 3}});
  Leaf();
  Leaf();
  Inner(1, {{"", 5}, {"m", 3}});
  Leaf();
  EXPECT_EQ(Start({1, 4}), ErrorCode::kCorruption);
}

TEST_F(HostileCheckpointTest, ARootThatNamesItself) {
  Inner(1, {{"", 2}, {"m", 1}});
  Leaf();
  EXPECT_EQ(Start({1}), ErrorCode::kCorruption);
}

TEST_F(HostileCheckpointTest, ALeafThatIsTheRootOfAnotherTable) {
  Inner(1, {{"", 2}, {"m", 3}});
  Leaf();
  Leaf();
  EXPECT_EQ(Start({1, 3}), ErrorCode::kCorruption);
}

TEST_F(HostileCheckpointTest, APageThatNamesOneWithoutAnImage) {
  Inner(1, {{"", 2}, {"m", 9}});
  Leaf();
  EXPECT_EQ(Start({1}), ErrorCode::kCorruption);
}

TEST_F(HostileCheckpointTest, ALevelThatDoesNotFit) {
  Inner(3, {{"", 2}});
  Inner(1, {{"", 3}});
  Leaf();
  EXPECT_EQ(Start({1}), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace deut::dc
