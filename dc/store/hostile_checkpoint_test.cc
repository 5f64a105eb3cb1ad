// Checkpoints in which every checksum is right, but whose pages contradict one another. A start refuses them, changes
// nothing, and ends in order. The offline check finds the same.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/incarnation_number.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/page_image.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/segment_store.h"
#include "dc/server/state_file.h"
#include "dc/store/record_store.h"
#include "dc/verify/verify.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr DcId kDc{7};
constexpr TableId kTable{1};
constexpr TableId kOther{2};
// Ids behind those of the pages: they were allocated once, and are free.
constexpr uint32_t kFreeIds = 3;

// Writes images under ids as a checkpoint, and starts from it.
class HostileCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(storage_->CreateDirectory("/dc").ok());
    ASSERT_TRUE(storage_->CreateDirectory("/dc/pages").ok());
    DcState state;
    state.dc = kDc;
    state.number = IncarnationNumber(1);
    ASSERT_TRUE(StateFile(*storage_, "/dc").Save(state).ok());
    store_ = std::move(*SegmentStore::Create(*storage_, RealRuntime(), "/dc/pages", kDc, SegmentStoreOptions()));
    appender_ = std::move(*store_->NewAppender(SegmentKind::kBase));
  }

  struct Child {
    std::string_view separator;
    uint32_t id;
  };
  // Adds an inner page as the image of the next page id. It covers all keys unless `bounds` say otherwise.
  void Inner(uint8_t level, const std::vector<Child>& children, const BasePage::Bounds& bounds = {},
             TableId table = kTable) {
    BasePage::Content content;
    for (const Child& child : children) {
      PageEntry entry;
      entry.data = child.separator.data();
      entry.key_bytes = static_cast<uint16_t>(child.separator.size());
      entry.child = PageId(child.id);
      content.Add(entry);
    }
    Page(*BasePage::Build(level, bounds, Timestamp(), content), table);
  }
  void Leaf(const BasePage::Bounds& bounds = {}, TableId table = kTable) {
    Page(*BasePage::Build(0, bounds, Timestamp(), {}), table);
  }
  void Page(const BasePage& page, TableId table) {
    std::string image;
    EncodeBaseImage(page, &image);
    const PartHeader header{.kind = PartKind::kBase,
                            .level = page.level,
                            .page = PageId(static_cast<uint32_t>(parts_.size() + 1)),
                            .table = table};
    parts_.push_back(*appender_->Append(header, image));
  }

  Status Start(const std::vector<uint32_t>& roots) {
    EXPECT_TRUE(appender_->Write().ok());
    store_->BeginCheckpoint(CheckpointNumber(1));
    const std::vector<SegmentExtent> segments = *store_->SyncAll(CheckpointNumber(1));
    CheckpointHead head;
    head.number = CheckpointNumber(1);
    head.dc = kDc;
    head.next_page = PageId(static_cast<uint32_t>(parts_.size() + 1 + kFreeIds));
    head.next_segment = store_->next_segment();
    auto writer = std::move(*CheckpointWriter::Create(*storage_, "/dc/pages", head));
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
    const std::vector<std::string> before = *storage_->List("/dc/pages");
    const RecordStore::Location home{*storage_, "/dc/pages", kDc, DcIncarnation(2)};
    const Status status = RecordStore::Open(RealRuntime(), home, RecordStoreOptions()).status();
    EXPECT_EQ(*storage_->List("/dc/pages"), before);
    return status;
  }
  VerifyReport Verify() {
    auto report = VerifyDirectory(*storage_, RealRuntime(), "/dc", {});
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    return report.ok() ? std::move(*report) : VerifyReport();
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
  Inner(1, {{"", 5}, {"m", 3}}, {}, kOther);
  Leaf({}, kOther);
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

TEST_F(HostileCheckpointTest, AnInnerPageOfAnotherTable) {
  Inner(2, {{"", 2}});
  Inner(1, {{"", 3}}, {}, kOther);
  Leaf();
  const Status status = Start({1});
  EXPECT_EQ(status, ErrorCode::kCorruption);
  EXPECT_NE(status.message().find("it says that it is of table 2"), std::string_view::npos) << status.ToString();
}

// --- The right sibling of an inner page. A flusher would look up any number there as a page.

class HostileSiblingTest : public HostileCheckpointTest {
 protected:
  static constexpr uint32_t kRoot = 1, kLeft = 2, kMiddle = 3, kRight = 4, kLeaf = 6, kOtherRoot = 8, kOtherInner = 9,
                            kFree = 11;

  // Adds a table whose root has three inner pages, and another table. The left and the middle inner page name these
  // right siblings.
  void Tables(uint32_t of_left, uint32_t of_middle) {
    Inner(2, {{"", kLeft}, {"h", kMiddle}, {"p", kRight}});
    Inner(1, {{"", 5}}, {{}, "h", PageId(of_left)});
    Inner(1, {{"h", kLeaf}}, {"h", "p", PageId(of_middle)});
    Inner(1, {{"p", 7}}, {"p", {}, kNoPage});
    Leaf({{}, "h", PageId(kLeaf)});
    Leaf({"h", "p", PageId(7)});
    Leaf({"p", {}, kNoPage});
    Inner(2, {{"", kOtherInner}}, {}, kOther);
    Inner(1, {{"", 10}}, {}, kOther);
    Leaf({}, kOther);
  }
  // Expects that a start and the offline check refuse the page, for this reason.
  void ExpectRefused(uint32_t page, const std::string& why, const std::vector<uint32_t>& roots) {
    const PageAddress at = parts_.at(page - 1);
    const std::string what = Concat("page ", page, " in segment ", at.segment(), " at ", at.offset(), ": ", why);
    const Status status = Start(roots);
    EXPECT_EQ(status, ErrorCode::kCorruption);
    for (const std::string& piece : {Concat("table 1: ", what), std::string("Nothing was deleted or changed. Restore"),
                                     std::string("deut dc verify")}) {
      EXPECT_NE(status.message().find(piece), std::string_view::npos) << piece << "\n" << status.ToString();
    }
    const VerifyReport report = Verify();
    EXPECT_TRUE(std::ranges::any_of(report.findings,
                                    [&](const Finding& finding) {
                                      return finding.what == Damaged::kPage &&
                                             finding.text.starts_with("checkpoint 1, table 1, ") &&
                                             finding.text.ends_with(what) && !finding.remedy.empty();
                                    }))
        << what << "\n"
        << ReportText(report);
  }
  // The same, for a left page that names this page instead of the middle one.
  void ExpectLeftRefused(uint32_t sibling) {
    Tables(sibling, kRight);
    ExpectRefused(kLeft, Concat("it names page ", sibling, " as its right sibling, but page 3 follows it"),
                  {kRoot, kOtherRoot});
  }
};

TEST_F(HostileSiblingTest, RightOnesAreTaken) {
  Tables(kMiddle, kRight);
  EXPECT_EQ(Start({kRoot, kOtherRoot}).ToString(), "OK");
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.clean()) << ReportText(report);
}

TEST_F(HostileSiblingTest, BeyondAllIds) { ExpectLeftRefused(uint32_t{1} << 30); }

TEST_F(HostileSiblingTest, BeyondTheMappingTable) { ExpectLeftRefused(UINT32_MAX - 1); }

TEST_F(HostileSiblingTest, AFreeId) { ExpectLeftRefused(kFree); }

TEST_F(HostileSiblingTest, ALeaf) { ExpectLeftRefused(kLeaf); }

TEST_F(HostileSiblingTest, TheRoot) { ExpectLeftRefused(kRoot); }

TEST_F(HostileSiblingTest, APageFurtherRight) { ExpectLeftRefused(kRight); }

TEST_F(HostileSiblingTest, AnInnerPageOfAnotherTable) { ExpectLeftRefused(kOtherInner); }

TEST_F(HostileSiblingTest, ThePageItself) {
  Tables(kLeft, kRight);
  ExpectRefused(kLeft, "the page is its own right sibling", {kRoot, kOtherRoot});
}

TEST_F(HostileSiblingTest, ACycleOfTwo) {
  Tables(kMiddle, kLeft);
  ExpectRefused(kMiddle, "it names page 2 as its right sibling, but page 4 follows it", {kRoot, kOtherRoot});
}

// The right sibling of a parent's last child is the first child of the next parent.
TEST_F(HostileSiblingTest, TheChildrenOfTwoParents) {
  Inner(3, {{"", 2}, {"m", 3}});
  Inner(2, {{"", 4}}, {{}, "m", PageId(3)});
  Inner(2, {{"m", 5}}, {"m", {}, kNoPage});
  Inner(1, {{"", 6}}, {{}, "m", PageId(3)});
  Inner(1, {{"m", 7}}, {"m", {}, kNoPage});
  Leaf({{}, "m", PageId(7)});
  Leaf({"m", {}, kNoPage});
  ExpectRefused(4, "it names page 3 as its right sibling, but page 5 follows it", {1});
}

}  // namespace
}  // namespace deut::dc
