#include "dc/page_store/hot_page_list.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr char kDirectory[] = "/pages";

HotPageList ListOf(uint32_t used, uint32_t others) {
  HotPageList list;
  for (uint32_t i = 1; i <= used; ++i) list.used.emplace_back(3 * i);
  for (uint32_t i = 1; i <= others; ++i) list.others.emplace_back(5 * i);
  return list;
}

// The sample of the format: page 7 was used, pages 2 and 0x01020304 were not.
std::string Sample() {
  const unsigned char bytes[] = {0x44, 0x48, 0x4f, 0x54, 0x9d, 0x2d, 0x00, 0x5a, 0x01, 0x00, 0x00,
                                 0x00, 0x01, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x07, 0x00,
                                 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01};
  return std::string(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

// Makes the checksum right again after a change of the bytes behind it.
std::string Sealed(std::string bytes) {
  StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8)));
  return bytes;
}

TEST(HotPageListTest, TheSampleIsReadAndWritten) {
  HotPageList list;
  list.used = {PageId(7)};
  list.others = {PageId(2), PageId(0x01020304)};
  EXPECT_EQ(EncodeHotPages(list), Sample());
  const auto read = DecodeHotPages(Sample(), "sample");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, list);
}

TEST(HotPageListTest, AListIsReadBackAsItWasWritten) {
  for (const auto& list : {ListOf(0, 0), ListOf(1, 0), ListOf(0, 1), ListOf(1000, 2000)}) {
    const auto read = DecodeHotPages(EncodeHotPages(list), "list");
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read, list);
  }
}

TEST(HotPageListTest, AFlippedBitOrAMissingByteIsRefused) {
  const std::string bytes = EncodeHotPages(ListOf(3, 4));
  for (size_t at = 0; at < bytes.size(); ++at) {
    EXPECT_FALSE(DecodeHotPages(bytes.substr(0, at), "list").ok()) << at;
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_FALSE(DecodeHotPages(flipped, "list").ok()) << at << " " << bit;
    }
  }
  EXPECT_FALSE(DecodeHotPages(bytes + "x", "list").ok());
}

TEST(HotPageListTest, NumbersThatContradictTheLengthAreRefusedThoughTheChecksumFits) {
  for (const auto& [at, number] : {std::pair<size_t, uint32_t>{12, 4}, {16, 2}, {16, UINT32_MAX}, {8, 1u << 16 | 1}}) {
    std::string bytes = Sample();
    StoreU32(bytes.data() + at, number);
    EXPECT_EQ(DecodeHotPages(Sealed(bytes), "list").status(), ErrorCode::kCorruption) << at << " " << number;
  }
}

TEST(HotPageListTest, AnotherVersionAndAnUnknownFormatAreToldFromDamage) {
  std::string newer = Sample();
  StoreU16(newer.data() + 8, 2);
  EXPECT_EQ(DecodeHotPages(Sealed(newer), "list").status(), ErrorCode::kVersionMismatch);
  EXPECT_EQ(DecodeHotPages(newer, "list").status(), ErrorCode::kCorruption) << "the checksum does not fit";
  EXPECT_EQ(DecodeHotPages("some text of somebody else", "list").status(), ErrorCode::kVersionMismatch);
  EXPECT_EQ(DecodeHotPages(std::string(100, '\0'), "list").status(), ErrorCode::kCorruption) << "torn";
}

TEST(HotPageListTest, ALossOfPowerAtAnyOperationLeavesOneOfTheTwoLists) {
  const HotPageList older = ListOf(300, 10), newer = ListOf(5, 600);
  uint64_t crashes = 0;
  for (uint64_t operation = 1; operation < 100; ++operation) {
    FaultyDisk disk(RealRuntime(), operation);
    const auto before = disk.Mount();
    ASSERT_TRUE(before->CreateDirectory(kDirectory).ok());
    ASSERT_TRUE(WriteHotPages(*before, kDirectory, older).ok());
    ASSERT_TRUE(before->SyncDirectory(kDirectory).ok());
    disk.CrashAfter(operation);
    const bool written = WriteHotPages(*before, kDirectory, newer).ok();
    if (written) disk.Crash(operation);
    const auto after = disk.Mount();
    const auto read = ReadHotPages(*after, kDirectory);
    ASSERT_TRUE(read.ok()) << operation << ": " << read.status().ToString();
    EXPECT_TRUE(*read == older || *read == newer) << operation;
    if (written) break;
    ++crashes;
  }
  EXPECT_GE(crashes, 3u) << "the write, the sync and the rename at least";
}

TEST(HotPageListTest, AListThatCannotBeWrittenLeavesTheOlderOneAndNoOtherFile) {
  FaultyDisk disk(RealRuntime(), 1);
  const auto storage = disk.Mount();
  ASSERT_TRUE(storage->CreateDirectory(kDirectory).ok());
  EXPECT_EQ(ReadHotPages(*storage, kDirectory).status(), ErrorCode::kNotFound);
  ASSERT_TRUE(WriteHotPages(*storage, kDirectory, ListOf(3, 4)).ok());
  disk.AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite});
  EXPECT_EQ(WriteHotPages(*storage, kDirectory, ListOf(5, 6)), ErrorCode::kResourceExhausted);
  const auto read = ReadHotPages(*storage, kDirectory);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, ListOf(3, 4));
  EXPECT_EQ(storage->List(kDirectory)->size(), 1u);
}

}  // namespace
}  // namespace deut::dc
