#include "dc/page_store/checkpoint_lineage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/page_store/checkpoint_fixture.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/page_store/known_pages.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {
namespace {

constexpr DcId kDc{0xDC};

CheckpointAncestor File(uint64_t number, uint32_t first, uint32_t end, uint32_t next_page) {
  return {.number = CheckpointNumber(number),
          .blocks = 1,
          .next_page = PageId(next_page),
          .pages = {.first = PageId(first), .end = PageId(end)}};
}

std::vector<uint64_t> NumbersOf(const CheckpointLineage& lineage) {
  std::vector<uint64_t> numbers;
  for (const CheckpointAncestor& file : lineage) numbers.push_back(file.number.value);
  return numbers;
}

TEST(CheckpointLineage, IsCompleteIfItsRangesHaveAllIdsOfItsOldestFile) {
  EXPECT_FALSE(IsCompleteLineage({}));
  EXPECT_TRUE(IsCompleteLineage(CheckpointLineage{{.number = CheckpointNumber(1), .next_page = PageId(100)}}));
  EXPECT_TRUE(IsCompleteLineage(CheckpointLineage{File(1, 1, 50, 100), File(2, 50, 100, 200)}));
  EXPECT_TRUE(IsCompleteLineage(CheckpointLineage{File(1, 50, 100, 100), File(2, 1, 60, 200)}));
  EXPECT_FALSE(IsCompleteLineage(CheckpointLineage{File(1, 1, 50, 100), File(2, 51, 100, 200)}));
  EXPECT_FALSE(IsCompleteLineage(CheckpointLineage{File(1, 2, 50, 100), File(2, 50, 100, 200)}));
  EXPECT_FALSE(IsCompleteLineage(CheckpointLineage{File(1, 1, 50, 100), File(2, 50, 99, 200)}));
}

TEST(CheckpointLineage, LosesItsOldestFilesOnceTheOthersHaveAllPages) {
  // A complete file, then ranges that go round.
  CheckpointLineage lineage = {{.number = CheckpointNumber(1), .blocks = 1, .next_page = PageId(100)}};
  const auto add = [&](uint64_t number, uint32_t first, uint32_t end, uint32_t next_page) {
    lineage.push_back(File(number, first, end, next_page));
    DropSuperfluous(&lineage);
    return NumbersOf(lineage);
  };
  EXPECT_EQ(add(3, 1, 40, 100), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(add(5, 40, 80, 110), (std::vector<uint64_t>{1, 3, 5}));
  EXPECT_EQ(add(7, 80, 120, 120), (std::vector<uint64_t>{3, 5, 7}));
  EXPECT_EQ(add(9, 1, 40, 130), (std::vector<uint64_t>{5, 7, 9}));
  EXPECT_EQ(add(11, 40, 130, 130), (std::vector<uint64_t>{9, 11}));
  EXPECT_EQ(add(13, 1, UINT32_MAX, 130), (std::vector<uint64_t>{13}));
}

TEST(KnownPagesTest, KnowsIdsAndRangesThatWereAdded) {
  KnownPages known(PageId(20'000));
  EXPECT_TRUE(known.Add(PageId(19'999)));
  EXPECT_FALSE(known.Add(PageId(19'999)));
  known.AddRange({.first = PageId(10), .end = PageId(20)});
  known.AddRange({.first = PageId(20), .end = PageId(30)});
  known.AddRange({.first = PageId(5000), .end = PageId(5001)});
  for (const uint32_t inside : {10u, 19u, 20u, 29u, 5000u}) EXPECT_FALSE(known.Add(PageId(inside))) << inside;
  for (const uint32_t outside : {1u, 9u, 30u, 4999u, 5001u}) EXPECT_TRUE(known.Add(PageId(outside))) << outside;
}

// Writes checkpoints of one lineage, each with some changes and a part of all ids, and keeps what the pages are.
class LineageTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kPages = 20'000;
  using Images = std::map<PageId, std::vector<PageAddress>>;

  LineageTest() : disk_(RealRuntime(), 1), storage_(disk_.Mount()) {
    EXPECT_TRUE(storage_->CreateDirectory("/dc").ok());
  }

  std::string PathOf(uint64_t number) { return "/dc/" + CheckpointName(CheckpointNumber(number)); }

  CheckpointContent Empty(uint64_t number) {
    CheckpointContent content = ContentWith(number, 0);
    content.pages.clear();
    content.tables.clear();
    content.dropped_ids_behind.clear();
    content.head.next_page = PageId(kPages + 1);
    return content;
  }
  void Change(uint32_t page, uint64_t salt) {
    images_[PageId(page)] = {PageAddress::Make(3, kSegmentHeaderBytes + (page + salt) % 30'000 * 128, 100)};
  }
  // Writes checkpoint `number` with the pages of `changed` and of the range; the lineage gets its file.
  Status Write(uint64_t number, PageRange range, const std::vector<uint32_t>& changed) {
    CheckpointContent content = Empty(number);
    content.head.pages = range;
    content.head.ancestors = lineage_;
    for (const auto& [page, parts] : images_) {
      if (range.first <= page && page < range.end) content.pages[page] = parts;
    }
    for (const uint32_t page : changed) {
      content.recent.insert(PageId(page));
      if (const auto image = images_.find(PageId(page)); image != images_.end()) {
        content.pages[PageId(page)] = image->second;
      }
    }
    CheckpointLineage all = lineage_;
    all.push_back(File(number, range.first.value, range.end.value, kPages + 1));
    DropSuperfluous(&all);
    all.pop_back();
    content.head.ancestors = all;
    DEUT_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::Create(*storage_, "/dc", content.head));
    DEUT_RETURN_IF_ERROR(AddAll(*writer, content));
    DEUT_RETURN_IF_ERROR(writer->Finish());
    lineage_ = all;
    lineage_.push_back(writer->AsAncestor());
    recent_ = content.recent;
    return Status::Ok();
  }
  // A complete file and four more, of which the last has ancestors 1, 3, 5 and 7.
  void WriteFive() {
    for (uint32_t page = 1; page <= kPages; ++page) Change(page, 0);
    ASSERT_EQ(Write(1, {}, {}).ToString(), "OK");
    for (uint32_t k = 1; k <= 4; ++k) {
      std::vector<uint32_t> changed;
      for (uint32_t page = k; page <= kPages; page += 17 * k) {
        changed.push_back(page);
        if (page % 5 == 0) {
          images_.erase(PageId(page));
        } else {
          Change(page, k);
        }
      }
      const PageRange range{.first = PageId(1 + (k - 1) * 2000), .end = PageId(1 + k * 2000)};
      ASSERT_EQ(Write(2 * k + 1, range, changed).ToString(), "OK");
    }
    ASSERT_EQ(NumbersOf(lineage_), (std::vector<uint64_t>{1, 3, 5, 7, 9}));
  }

  Result<CheckpointKeeper> Read(uint64_t number, int threads = 1) {
    class Locked final : public CheckpointKeeper {
     public:
      Status OnPage(PageId page, std::span<const PageAddress> parts) override {
        const MutexLock lock(mutex_);
        return CheckpointKeeper::OnPage(page, parts);
      }
      void OnRecentChange(PageId page) override {
        const MutexLock lock(mutex_);
        CheckpointKeeper::OnRecentChange(page);
      }

     private:
      Mutex mutex_{RealRuntime()};
    };
    Locked keeper;
    DEUT_ASSIGN_OR_RETURN(const CheckpointCounts counts,
                          ReadCheckpoint(*storage_, "/dc", CheckpointNumber(number), kDc, &keeper,
                                         {.runtime = &RealRuntime(), .threads = threads}));
    EXPECT_EQ(counts.pages, keeper.content.pages.size());
    return CheckpointKeeper(keeper);
  }

  FaultyDisk disk_;
  std::unique_ptr<Storage> storage_;
  Images images_;
  CheckpointLineage lineage_;
  std::set<PageId> recent_;
};

TEST_F(LineageTest, TheNewestFileThatSaysSomethingAboutAPageIsRight) {
  WriteFive();
  for (const int threads : {1, 4}) {
    const auto read = Read(9, threads);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(read->content.pages == images_) << threads;
    EXPECT_EQ(read->content.recent, recent_);
    // Parts of replaced images do not count.
    EXPECT_EQ(read->live_bytes, LiveBytesOf(read->content)) << threads;
    EXPECT_EQ(read->file, lineage_.back());
    EXPECT_EQ(NumbersOf(read->content.head.ancestors), (std::vector<uint64_t>{1, 3, 5, 7}));
  }
}

// Only the records that count have to lie in segments that still exist.
TEST_F(LineageTest, WhatANewerFileHasReplacedMayNameSegmentsThatAreGone) {
  for (uint32_t page = 1; page <= 10; ++page) Change(page, 0);
  images_[PageId(5)] = {PageAddress::Make(4, kSegmentHeaderBytes, 100)};
  CheckpointContent content = Empty(1);
  content.segments.insert(content.segments.begin() + 1,
                          {.number = 4, .kind = SegmentKind::kBase, .written_bytes = 1 << 20});
  content.pages = images_;
  const auto writer = std::move(*CheckpointWriter::Create(*storage_, "/dc", content.head));
  ASSERT_TRUE(AddAll(*writer, content).ok());
  ASSERT_TRUE(writer->Finish().ok());
  lineage_ = {writer->AsAncestor()};
  const Status without = Write(3, {.first = PageId(1), .end = PageId(2)}, {});
  ASSERT_TRUE(without.ok()) << without.ToString();
  const auto refused = Read(3);
  EXPECT_EQ(refused.status(), ErrorCode::kCorruption);
  EXPECT_NE(refused.status().message().find("page 5: a base part"), std::string::npos) << refused.status().ToString();
  Change(5, 1);
  ASSERT_TRUE(Write(5, {.first = PageId(1), .end = PageId(2)}, {5}).ok());
  const auto read = Read(5);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_TRUE(read->content.pages == images_);
}

TEST_F(LineageTest, DamageOfAnyFileOfItIsFound) {
  WriteFive();
  for (const uint64_t number : {1u, 3u, 5u, 7u, 9u}) {
    const auto file = storage_->Open(PathOf(number), {});
    const uint64_t bytes = *(*file)->Size();
    for (uint64_t at = number; at < bytes; at += at < 300 ? 13 : 20'011) {
      ASSERT_TRUE(disk_.FlipBit(PathOf(number), at, static_cast<int>(at % 8)).ok());
      const Status status = Read(9).status();
      ASSERT_EQ(status, ErrorCode::kCorruption) << number << " " << at << ": " << status.ToString();
      EXPECT_TRUE(status.message().starts_with(PathOf(number))) << status.ToString();
      ASSERT_TRUE(disk_.FlipBit(PathOf(number), at, static_cast<int>(at % 8)).ok());
    }
  }
  EXPECT_TRUE(Read(9).ok());
  EXPECT_TRUE(CheckLineageIsThere(*storage_, "/dc", kDc, lineage_).ok());
  for (const uint64_t number : {3u, 7u}) {
    ASSERT_TRUE(storage_->Rename(PathOf(number), "/dc/away").ok());
    const Status status = Read(9).status();
    EXPECT_EQ(status, ErrorCode::kCorruption);
    EXPECT_NE(status.message().find("checkpoint 9 needs it and it is not there"), std::string::npos);
    EXPECT_FALSE(CheckLineageIsThere(*storage_, "/dc", kDc, lineage_).ok());
    ASSERT_TRUE(storage_->Rename("/dc/away", PathOf(number)).ok());
  }
}

// A file of another try has the same number, and is whole.
TEST_F(LineageTest, AnotherFileOfTheSameNumberIsRefused) {
  WriteFive();
  const CheckpointLineage right = lineage_;
  lineage_.resize(2);
  Change(77, 9);
  ASSERT_TRUE(Write(5, lineage_[1].pages, {77}).ok());
  EXPECT_NE(lineage_.back(), right[2]);
  const Status status = Read(9).status();
  EXPECT_EQ(status, ErrorCode::kCorruption);
  EXPECT_TRUE(status.message().starts_with(PathOf(5))) << status.ToString();
  EXPECT_FALSE(CheckLineageIsThere(*storage_, "/dc", kDc, right).ok());
}

TEST_F(LineageTest, ImpossibleLineagesAreNotWritten) {
  WriteFive();
  const auto wrong = [&](const std::function<void(CheckpointHead&)>& change) {
    CheckpointContent content = Empty(11);
    content.head.pages = {.first = PageId(8001), .end = PageId(10'001)};
    content.head.ancestors = lineage_;
    change(content.head);
    const auto writer = CheckpointWriter::Create(*storage_, "/dc", content.head);
    return writer.status().code();
  };
  using H = CheckpointHead;
  EXPECT_EQ(wrong([](H&) {}), ErrorCode::kOk);
  EXPECT_EQ(wrong([](H& h) { h.ancestors.clear(); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.ancestors.erase(h.ancestors.begin()); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { std::swap(h.ancestors[1], h.ancestors[2]); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.ancestors.back().number = CheckpointNumber(11); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.ancestors[1].blocks = 0; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.ancestors[1].next_page = PageId(kPages + 2); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.pages = {.first = PageId(5), .end = PageId(4)}; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.pages.first = PageId(0); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.previous = {File(10, 5, 10, 100)}; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.previous = {File(11, 1, 100, 100)}; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](H& h) { h.previous = {File(9, 1, 100, 100)}; }), ErrorCode::kInternal);  // of both lineages
  EXPECT_EQ(wrong([](H& h) { h.previous = {File(10, 1, 100, 100)}; }), ErrorCode::kOk);
}

// A complete file needs no record for a page without an image, but the other lineage does, if the page has lost it
// since its last file.
TEST_F(LineageTest, APageWithoutAnImageStandsOnlyInFilesOfWhichSomeLineageNeedsIt) {
  const auto wrong = [&](bool previous, bool recent) {
    CheckpointContent content = Empty(2);
    if (previous) content.head.previous = {File(1, 1, 100, 100)};
    const auto writer = std::move(*CheckpointWriter::Create(*storage_, "/dc", content.head));
    const Status added = writer->AddPage(PageId(5), {}, recent);
    return added.ok() ? writer->Finish().code() : added.code();
  };
  EXPECT_EQ(wrong(false, false), ErrorCode::kInternal);
  EXPECT_EQ(wrong(false, true), ErrorCode::kInternal);
  EXPECT_EQ(wrong(true, false), ErrorCode::kInternal);
  EXPECT_EQ(wrong(true, true), ErrorCode::kOk);
  const auto read = Read(2);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_TRUE(read->content.pages.empty());
  EXPECT_EQ(read->content.recent, std::set<PageId>{PageId(5)});
}

TEST_F(LineageTest, AncestorsOfBothKeptCheckpointsAreKept) {
  WriteFive();
  CheckpointLineage ancestors = lineage_;
  ancestors.pop_back();
  const auto set = std::move(*CheckpointSet::Open(*storage_, "/dc", kDc, CheckpointNumber(9), ancestors));
  // The next two are complete, each in a lineage of its own.
  const std::vector<std::vector<uint64_t>> left = {{10, 9, 7, 5, 3, 1}, {11, 10}};
  for (uint64_t k = 10; k <= 11; ++k) {
    const CheckpointContent content = Empty(k);
    auto writer = std::move(*CheckpointWriter::Create(*storage_, "/dc", content.head));
    ASSERT_TRUE(set->Complete(std::move(writer)).ok());
    const Result<std::vector<CheckpointNumber>> numbers = FindCheckpoints(*storage_, "/dc");
    ASSERT_TRUE(numbers.ok()) << numbers.status().ToString();
    std::vector<uint64_t> found;
    for (const CheckpointNumber number : *numbers) found.push_back(number.value);
    EXPECT_EQ(found, left[k - 10]);
    if (k == 10) EXPECT_TRUE(Read(9).ok());
  }
}

}  // namespace
}  // namespace deut::dc
