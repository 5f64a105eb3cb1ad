// Tests of Inspect's important lines.
#include "dc/verify/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/hot_page_list.h"
#include "dc/verify/store_on_disk.h"

namespace deut::dc {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class InspectTest : public ::testing::Test {
 protected:
  // Returns the printed text, followed by the error if there is one.
  std::string Run(Inspected what, uint64_t number = 0) {
    std::string text;
    const InspectRequest request{
        .what = what, .number = number, .show = [](std::string_view bytes) { return Quoted(bytes); }};
    const Status status = Inspect(store_.storage(), RealRuntime(), std::string(StoreOnDisk::kDirectory), request,
                                  [&](std::string_view piece) { text.append(piece); });
    return status.ok() ? text : text + status.ToString();
  }

  StoreOnDisk store_;
};

TEST_F(InspectTest, TheDirectoryShowsTheListOfHotPages) {
  store_.Start();
  store_.Create(StoreOnDisk::kAccounts);
  store_.Checkpoint();
  store_.Stop();
  HotPageList list;
  list.used = {PageId(1)};
  list.others = {PageId(2), PageId(3)};
  ASSERT_TRUE(WriteHotPages(store_.storage(), StoreOnDisk::PathOf("pages"), list).ok());
  const std::string shown = Run(Inspected::kDirectory);
  EXPECT_THAT(shown, HasSubstr("hot pages: 3, 1 of them used lately\n"));
  EXPECT_THAT(shown, ::testing::Not(HasSubstr("does not belong")));
  store_.Flip(StoreOnDisk::PathOf("pages/hot_pages"), 21, 0);
  EXPECT_THAT(Run(Inspected::kDirectory), HasSubstr("the checksum does not fit"));
}

TEST_F(InspectTest, ASmallStoreWhole) {
  store_.Start();
  store_.Create(StoreOnDisk::kAccounts);
  store_.Put(StoreOnDisk::kAccounts, "b", std::string(600, 'v'));
  store_.Delete(StoreOnDisk::kAccounts, "c");
  store_.Checkpoint();
  store_.Put(StoreOnDisk::kAccounts, "a", "new");
  store_.Checkpoint();
  store_.Stop();
  EXPECT_EQ(Run(Inspected::kDirectory),
            "data component 7, incarnation 1\n"
            "no transaction component has said Hello\n"
            "checkpoint 2: position 400/1, 1 tables, 1 pages, 2 segments\n"
            "checkpoint 1: position 300/1, 1 tables, 1 pages, 1 segments\n"
            "base segments: 1 of 8192 bytes\n"
            "delta segments: 1 of 8192 bytes\n");
  EXPECT_EQ(Run(Inspected::kCheckpoint),
            "checkpoint 2 of data component 7, written by incarnation 1\n"
            "position 400/1, stable 300/1\n"
            "pages 1, ids below 2\n"
            "parts 2, of which deltas 1\n"
            "table 3: \"table 3\", root page 1\n"
            "segment 1: base, 8192 bytes, 768 named by pages\n"
            "segment 2: delta, 8192 bytes, 128 named by pages\n");
  EXPECT_THAT(Run(Inspected::kCheckpoint, 1), StartsWith("checkpoint 1 of data component 7"));
  EXPECT_EQ(Run(Inspected::kSegment, 2),
            "segment 2: delta parts, data component 7, 8192 bytes of at most 65536; the newest checkpoint names 8192\n"
            "offset 4096: delta part of page 1, table 3, level 0, 27 bytes, after segment 1 offset 4096, live\n");
  EXPECT_EQ(Run(Inspected::kPage, 1),
            "page 1 in checkpoint 2: 2 parts\n"
            "delta part in segment 2 offset 4096, 27 bytes\n"
            "base part in segment 1 offset 4096, 678 bytes\n"
            "table 3, level 0, flat 0\n"
            "keys from the first to the last\n"
            "2 records, 1 tombstones\n"
            "  \"a\" @5/1 = \"new\"\n"
            "  \"b\" @3/1 = \"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\"... (600 bytes)\n"
            "  \"c\" @4/1 deleted\n");
  EXPECT_EQ(Run(Inspected::kTable, 3),
            "table 3 in checkpoint 2: \"table 3\", root page 1, 1 levels\n"
            "level 0: 1 pages, 3 records and tombstones, 1 delta parts, 896 bytes\n");
}

TEST_F(InspectTest, CompressedTablesAndPartsAreNamed) {
  store_.Start();
  store_.Create(StoreOnDisk::kAccounts, {.compression = Compression::kZstd});
  store_.Put(StoreOnDisk::kAccounts, "b", std::string(600, 'v'));
  store_.Checkpoint();
  store_.Stop();
  EXPECT_THAT(Run(Inspected::kCheckpoint), HasSubstr("root page 1, compressed with zstd\n"));
  EXPECT_THAT(Run(Inspected::kSegment, 1), HasSubstr(" bytes, compressed with zstd from 655, live\n"));
  const std::string page = Run(Inspected::kPage, 1);
  EXPECT_THAT(page, HasSubstr("base part in segment 1 offset 4096, "));
  EXPECT_THAT(page, HasSubstr(" bytes, compressed with zstd from 655\n"));
  EXPECT_THAT(page, HasSubstr("... (600 bytes)\n"));
}

TEST_F(InspectTest, ATreeOfLevels) {
  store_.Fill(2000);
  EXPECT_THAT(Run(Inspected::kTable, 3),
              MatchesRegex("table 3 in checkpoint 4: \"table 3\", root page 1, [0-9]+ levels\n"
                           "(level [0-9]+: [0-9]+ pages, [0-9]+ children, 0 delta parts, [0-9]+ bytes\n)+"
                           "level 0: [0-9]+ pages, [0-9]+ records and tombstones, [0-9]+ delta parts, "
                           "[0-9]+ bytes\n"));
  EXPECT_EQ(Run(Inspected::kTable, 5), "table 5: dropped\n");
  EXPECT_THAT(Run(Inspected::kPage, 1), HasSubstr(" children\n  the first key -> page "));
}

TEST_F(InspectTest, MissingObjectsAreNotFound) {
  store_.Fill(100);
  EXPECT_THAT(Run(Inspected::kTable, 99), HasSubstr("checkpoint 4 has no table 99"));
  EXPECT_THAT(Run(Inspected::kPage, 99999), HasSubstr("has no image of page 99999"));
  EXPECT_THAT(Run(Inspected::kSegment, 99), HasSubstr("there is no segment 99"));
  EXPECT_THAT(Run(Inspected::kCheckpoint, 99), HasSubstr("NOT_FOUND"));
}

TEST_F(InspectTest, DamageIsShownInItsPlace) {
  store_.Fill(300);
  const std::vector<StoreOnDisk::Part> parts = store_.Parts();
  const StoreOnDisk::Part& part = parts.at(1);
  ASSERT_EQ(part.address.segment(), parts.at(2).address.segment());
  store_.Flip(part.path, part.address.offset() + 50, 2);
  const std::string text = Run(Inspected::kSegment, part.address.segment());
  EXPECT_THAT(text, HasSubstr(Concat("\noffset ", part.address.offset(), ": DAMAGED: ")));
  EXPECT_THAT(text, HasSubstr(Concat("\noffset ", parts.at(2).address.offset(), ": base part of page "))) << text;
}

}  // namespace
}  // namespace deut::dc
