#include "dc/page_store/checkpoint_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_fixture.h"
#include "dc/page_store/checkpoint_format.h"

namespace deut::dc {
namespace {

constexpr DcId kDc{0xDC};
constexpr std::string_view kPath = "/dc/checkpoint-000000000007";

class CheckpointFileTest : public ::testing::Test {
 protected:
  CheckpointFileTest() : disk_(RealRuntime(), 1), storage_(disk_.Mount()) {
    EXPECT_TRUE(storage_->CreateDirectory("/dc").ok());
  }

  Status Write(const CheckpointContent& content) {
    DEUT_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::Create(*storage_, "/dc", content.head));
    DEUT_RETURN_IF_ERROR(AddAll(*writer, content));
    return writer->Finish();
  }

  Result<CheckpointContent> Read(uint64_t number = 7, DcId dc = kDc) {
    CheckpointKeeper keeper;
    DEUT_ASSIGN_OR_RETURN(const CheckpointCounts counts,
                          ReadCheckpoint(*storage_, "/dc", CheckpointNumber(number), dc, &keeper));
    EXPECT_EQ(counts, (CheckpointCounts{.tables = keeper.content.tables.size(),
                                        .segments = keeper.content.segments.size(),
                                        .pages = keeper.content.pages.size()}));
    EXPECT_EQ(keeper.live_bytes, LiveBytesOf(keeper.content));
    return keeper.content;
  }

  std::string Bytes() {
    const auto file = storage_->Open(std::string(kPath), {});
    std::string bytes((*file)->Size().value(), '\0');
    EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
    return bytes;
  }

  void Replace(const std::string& bytes) {
    const auto file = storage_->Open(std::string(kPath), {.create = true, .writable = true});
    ASSERT_TRUE((*file)->Truncate(0).ok());
    ASSERT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
  }

  std::vector<std::string> Names() { return *storage_->List("/dc"); }

  FaultyDisk disk_;
  std::unique_ptr<Storage> storage_;
};

TEST_F(CheckpointFileTest, GoldenBytes) {
  CheckpointContent content;
  content.head = {.number = CheckpointNumber(7),
                  .dc = DcId(0x1122334455667788),
                  .incarnation = DcIncarnation(2),
                  .position = {.commit = Lsn(0xABCDEF), .sequence = 5},
                  .next_page = PageId(12),
                  .next_segment = 4};
  content.tables = {{{TableId(1), PageId(10)}, "tab"}, {{TableId(2), PageId(0)}, ""}};
  content.dropped_ids_behind[TableId(2)] = 3;
  content.segments = {{.number = 2, .kind = SegmentKind::kBase, .written_bytes = 0x3000},
                      {.number = 3, .kind = SegmentKind::kDelta, .written_bytes = 0x2000}};
  content.pages[PageId(10)] = {PageAddress::Make(3, 4096 + 128, 200), PageAddress::Make(2, 8192, 100)};
  ASSERT_EQ(Write(content).ToString(), "OK");
  const std::string bytes = Bytes();
  ASSERT_EQ(bytes.size(), 65536u);
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, 48)),
            "44434b50"
            "ea52ba41"
            "0400"
            "0100"
            "96000000"
            "0700000000000000"
            "8877665544332211"
            "0000000000000000"
            "00000000"
            "00000000");
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(48, 150)),
            "01"
            "0200000000000000"
            "efcdab0000000000"
            "05000000"
            "0000000000000000"
            "00000000"
            "0c000000"
            "0400000000000000"
            "02"
            "01000000"
            "0a000000"
            "03"
            "746162"
            "06"
            "02000000"
            "05000000"
            "03"
            "01"
            "0200000000000000"
            "0030000000000000"
            "03"
            "02"
            "0300000000000000"
            "0020000000000000"
            "04"
            "02"
            "0a000000"
            "0221008001000000"
            "0140000001000000"
            "05"
            "0200000000000000"
            "0200000000000000"
            "0100000000000000");
  EXPECT_EQ(bytes.substr(48 + 150), std::string(bytes.size() - 48 - 150, '\0'));
}

// A file is of version 5 only if a table has options. An earlier program reads all others.
TEST_F(CheckpointFileTest, OptionsOfTablesMakeAFileOfFormatVersion5) {
  CheckpointContent content = ContentWith(7, 5);
  ASSERT_EQ(Write(content).ToString(), "OK");
  EXPECT_EQ(LoadU16(Bytes().data() + 8), 4);
  const size_t payload_bytes = LoadU32(Bytes().data() + 12);
  content.head.has_table_options = true;
  content.compression[TableId(7)] = Compression::kZstd;
  ASSERT_EQ(Write(content).ToString(), "OK");
  std::string bytes = Bytes();
  EXPECT_EQ(LoadU16(bytes.data() + 8), 5);
  EXPECT_EQ(LoadU32(bytes.data() + 12), payload_bytes + 2);  // a byte for each of the two live tables
  auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, content);
  // The option of table 1 stands behind its name.
  const size_t option = bytes.find("accounts") + std::string_view("accounts").size();
  EXPECT_EQ(bytes[option], 1);
  for (const char unknown : {'\0', '\4', '\xFF'}) {
    bytes[option] = unknown;
    StoreU32(bytes.data() + 4, Crc32c(bytes.data() + 8, bytes.size() - 8));
    Replace(bytes);
    EXPECT_EQ(Read().status().code(), ErrorCode::kCorruption) << int{unknown};
  }
}

// A stored sample of format version 1: each dropped table has its own `table` record, without root and name.
TEST_F(CheckpointFileTest, AFileOfFormatVersion1IsRead) {
  std::string bytes = absl::HexStringToBytes(
      "44434b50857703f301000100970000000700000000000000887766554433221100000000000000000000000000000000"
      "010200000000000000efcdab0000000000050000000000000000000000000000000c0000000400000000000000020100"
      "00000a000000037461620202000000000000000003010200000000000000003000000000000003020300000000000000"
      "002000000000000004020a00000002218001000000000140000100000000050200000000000000020000000000000001"
      "00000000000000");
  bytes.resize(kCheckpointBlockBytes);
  Replace(bytes);
  const auto content = Read(7, DcId(0x1122334455667788));
  ASSERT_TRUE(content.ok()) << content.status().ToString();
  EXPECT_EQ(content->head.position, (Position{.commit = Lsn(0xABCDEF), .sequence = 5}));
  ASSERT_EQ(content->tables.size(), 2u);
  EXPECT_EQ(content->tables[0].second, "tab");
  EXPECT_EQ(content->tables[1].first, std::pair(TableId(2), PageId(0)));
  EXPECT_TRUE(content->dropped_ids_behind.empty());
  // Today a dropped table has another kind of record.
  StoreU16(bytes.data() + 8, 3);
  StoreU32(bytes.data() + 4, Crc32c(bytes.data() + 8, bytes.size() - 8));
  Replace(bytes);
  const Status refused = Read(7, DcId(0x1122334455667788)).status();
  EXPECT_EQ(refused, ErrorCode::kCorruption);
  EXPECT_NE(refused.message().find("table 2 without a root"), std::string_view::npos) << refused.ToString();
  const auto addresses = std::vector{PageAddress::Make(3, 4096 + 128, 200), PageAddress::Make(2, 8192, 100)};
  ASSERT_EQ(content->pages.size(), 1u);
  EXPECT_EQ(content->pages.at(PageId(10)), addresses);
}

// A stored sample of format version 2: the file of GoldenBytes, with addresses of the earlier layout.
TEST_F(CheckpointFileTest, AFileOfFormatVersion2IsRead) {
  std::string bytes = absl::HexStringToBytes(
      "44434b509389b02602000100960000000700000000000000887766554433221100000000000000000000000000000000"
      "010200000000000000efcdab0000000000050000000000000000000000000000000c0000000400000000000000020100"
      "00000a000000037461620602000000050000000301020000000000000000300000000000000302030000000000000000"
      "2000000000000004020a0000000221800100000000014000010000000005020000000000000002000000000000000100"
      "000000000000");
  bytes.resize(kCheckpointBlockBytes);
  Replace(bytes);
  const auto content = Read(7, DcId(0x1122334455667788));
  ASSERT_TRUE(content.ok()) << content.status().ToString();
  EXPECT_EQ(content->dropped_ids_behind.at(TableId(2)), 3u);
  const auto addresses = std::vector{PageAddress::Make(3, 4096 + 128, 200), PageAddress::Make(2, 8192, 100)};
  ASSERT_EQ(content->pages.size(), 1u);
  EXPECT_EQ(content->pages.at(PageId(10)), addresses);
}

// A stored sample of format version 3: the file of GoldenBytes. It has no ancestors, like every file of that version.
TEST_F(CheckpointFileTest, AFileOfFormatVersion3IsRead) {
  std::string bytes = absl::HexStringToBytes(
      "44434b508a19651103000100960000000700000000000000887766554433221100000000000000000000000000000000"
      "010200000000000000efcdab0000000000050000000000000000000000000000000c0000000400000000000000020100"
      "00000a000000037461620602000000050000000301020000000000000000300000000000000302030000000000000000"
      "2000000000000004020a0000000221008001000000014000000100000005020000000000000002000000000000000100"
      "000000000000");
  bytes.resize(kCheckpointBlockBytes);
  Replace(bytes);
  const auto content = Read(7, DcId(0x1122334455667788));
  ASSERT_TRUE(content.ok()) << content.status().ToString();
  EXPECT_TRUE(content->head.ancestors.empty() && content->head.previous.empty());
  const auto addresses = std::vector{PageAddress::Make(3, 4096 + 128, 200), PageAddress::Make(2, 8192, 100)};
  EXPECT_EQ(content->pages.at(PageId(10)), addresses);
  // That version knows no mark of a recent change in the number of parts.
  const size_t parts = bytes.find(std::string("\x04\x02\x0a", 3), 48) + 1;
  bytes[parts] = static_cast<char>(bytes[parts] | static_cast<char>(kRecentChange));
  StoreU32(bytes.data() + 4, Crc32c(bytes.data() + 8, bytes.size() - 8));
  Replace(bytes);
  EXPECT_EQ(Read(7, DcId(0x1122334455667788)).status(), ErrorCode::kCorruption);
}

TEST_F(CheckpointFileTest, WrittenContentIsReadBack) {
  for (const uint32_t pages : {0u, 1u, 2000u, 30'000u}) {
    const CheckpointContent content = ContentWith(7, pages);
    ASSERT_EQ(Write(content).ToString(), "OK");
    const auto read = Read();
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(*read == content) << pages;
    EXPECT_EQ(Bytes().size() % kCheckpointBlockBytes, 0u);
    EXPECT_EQ(Names(), (std::vector<std::string>{"checkpoint-000000000007"}));
  }
  EXPECT_GT(Bytes().size(), 15 * kCheckpointBlockBytes);
}

TEST_F(CheckpointFileTest, AnotherNumberOrDcIsRefused) {
  ASSERT_TRUE(Write(ContentWith(7, 5)).ok());
  EXPECT_EQ(Read(7, DcId(1)).status().code(), ErrorCode::kCorruption);
  EXPECT_EQ(Read(8).status().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(storage_->Rename(std::string(kPath), "/dc/checkpoint-000000000008").ok());
  EXPECT_EQ(Read(8).status().code(), ErrorCode::kCorruption);
}

TEST_F(CheckpointFileTest, EveryFlippedBitCutAndAppendixIsRefused) {
  ASSERT_TRUE(Write(ContentWith(7, 4000)).ok());
  const std::string bytes = Bytes();
  ASSERT_EQ(bytes.size(), 3 * kCheckpointBlockBytes);
  for (uint64_t at = 0; at < bytes.size(); at += at % kCheckpointBlockBytes < 200 ? 1 : 997) {
    const int bit = static_cast<int>(at % 8);
    ASSERT_TRUE(disk_.FlipBit(std::string(kPath), at, bit).ok());
    const Status status = ReadCheckpoint(*storage_, "/dc", CheckpointNumber(7), kDc, nullptr).status();
    ASSERT_EQ(status.code(), ErrorCode::kCorruption) << at;
    ASSERT_TRUE(status.message().starts_with(std::string(kPath) + ": offset ")) << status.ToString();
    ASSERT_TRUE(disk_.FlipBit(std::string(kPath), at, bit).ok());
  }
  for (const size_t size : {size_t{0}, size_t{100}, kCheckpointBlockBytes - 1, kCheckpointBlockBytes,
                            2 * kCheckpointBlockBytes, bytes.size() - 1}) {
    Replace(bytes.substr(0, size));
    EXPECT_EQ(Read().status().code(), ErrorCode::kCorruption) << size;
  }
  for (const size_t more : {size_t{1}, size_t{4096}, kCheckpointBlockBytes}) {
    Replace(bytes + std::string(more, '\0'));
    EXPECT_EQ(Read().status().code(), ErrorCode::kCorruption) << more;
  }
  // Blocks of another attempt at the same checkpoint.
  CheckpointContent other = ContentWith(7, 4000);
  other.head.position.sequence = 78;
  Replace("");
  ASSERT_TRUE(Write(other).ok());
  Replace(Bytes().substr(0, kCheckpointBlockBytes) + bytes.substr(kCheckpointBlockBytes));
  EXPECT_EQ(Read().status().code(), ErrorCode::kCorruption);
  Replace(bytes);
  EXPECT_EQ(Read().status().ToString(), "OK");
}

// Bytes with correct checksums that are no checkpoint.
TEST_F(CheckpointFileTest, SealedNonsenseIsRefused) {
  ASSERT_TRUE(Write(ContentWith(7, 2)).ok());
  const std::string bytes = Bytes();
  const auto sealed = [&](size_t at, char value) {
    std::string wrong = bytes;
    wrong[at] = value;
    StoreU32(wrong.data() + 4, Crc32c(wrong.data() + 8, wrong.size() - 8));
    Replace(wrong);
    return Read().status().code();
  };
  EXPECT_EQ(sealed(44, 0), ErrorCode::kOk);
  EXPECT_EQ(sealed(8, 6), ErrorCode::kVersionMismatch);
  EXPECT_EQ(sealed(8, 0), ErrorCode::kVersionMismatch);
  EXPECT_EQ(sealed(10, 0), ErrorCode::kCorruption);  // not marked as the last block
  EXPECT_EQ(sealed(10, 2), ErrorCode::kCorruption);
  EXPECT_EQ(sealed(44, 1), ErrorCode::kCorruption);
  EXPECT_EQ(sealed(40, 1), ErrorCode::kCorruption);     // a predecessor, though it is the first block
  EXPECT_EQ(sealed(12, 1), ErrorCode::kCorruption);     // fewer records
  EXPECT_EQ(sealed(15, 1), ErrorCode::kCorruption);     // more records than fit
  EXPECT_EQ(sealed(48, 9), ErrorCode::kCorruption);     // a record of an unknown type
  EXPECT_EQ(sealed(48, 2), ErrorCode::kCorruption);     // no head
  EXPECT_EQ(sealed(60000, 1), ErrorCode::kCorruption);  // not zero behind the records
}

// A start marks the pages that have changed recently in an array of as many bits as there may be pages.
TEST_F(CheckpointFileTest, ARecentChangeOfAPageThatCannotExistReachesNoVisitor) {
  CheckpointContent content = ContentWith(7, 2);
  content.recent = {PageId(40)};
  ASSERT_EQ(Write(content).ToString(), "OK");
  const std::string bytes = Bytes();
  const auto parts = static_cast<char>(content.pages.at(PageId(40)).size() | kRecentChange);
  const size_t at = bytes.find(std::string("\x04") + parts + std::string("\x28\0\0\0", 4));
  ASSERT_NE(at, std::string::npos);
  for (const uint32_t page : {UINT32_MAX, uint32_t{0x00FFFFFF}, content.head.next_page.value, uint32_t{40}}) {
    std::string wrong = bytes;
    StoreU32(wrong.data() + at + 2, page);
    StoreU32(wrong.data() + 4, Crc32c(wrong.data() + 8, wrong.size() - 8));
    Replace(wrong);
    CheckpointKeeper keeper;
    const auto read = ReadCheckpoint(*storage_, "/dc", CheckpointNumber(7), kDc, &keeper);
    EXPECT_EQ(read.ok(), page == 40) << read.status().ToString();
    if (page != 40) EXPECT_EQ(read.status(), ErrorCode::kCorruption);
    EXPECT_EQ(keeper.content.recent.contains(PageId(page)), page == 40) << page;
  }
}

TEST_F(CheckpointFileTest, ImpossibleContentIsNotWritten) {
  const auto wrong = [&](const std::function<void(CheckpointContent&)>& change) {
    CheckpointContent content = ContentWith(7, 5);
    change(content);
    const Status status = Write(content);
    EXPECT_TRUE(Names().empty());  // no file is left
    return status.code();
  };
  using C = CheckpointContent;
  EXPECT_EQ(wrong([](C& c) { c.head.next_page = PageId(0); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.head.next_page = PageId(30); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.head.next_segment = 8; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.tables[1].first.first = TableId(1); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.tables[0].second = ""; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.tables[0].second = std::string(256, 'x'); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.tables[1].second = "dropped"; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.tables[0].first.second = PageId(20); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.tables[0].first.second = PageId(15); }), ErrorCode::kInternal);  // no image
  EXPECT_EQ(wrong([](C& c) { c.dropped_ids_behind[TableId(1)] = 1; }), ErrorCode::kInternal);   // table 1 is live
  EXPECT_EQ(wrong([](C& c) { c.dropped_ids_behind[TableId(4)] = 3; }), ErrorCode::kInternal);   // table 7 is live
  EXPECT_EQ(wrong([](C& c) { c.dropped_ids_behind[TableId(4)] = UINT32_MAX; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.compression[TableId(1)] = Compression::kLz4; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) {
              c.head.has_table_options = true;
              c.compression[TableId(4)] = Compression::kLz4;  // a dropped table
            }),
            ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.segments[1].number = 3; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.segments[1].written_bytes = 5000; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.segments[1].written_bytes = 4096; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.segments[1].written_bytes = PageAddress::kMaxOffset + 4096; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.segments[1].kind = SegmentKind(3); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.segments.pop_back(); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(0)] = c.pages[PageId(10)]; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(99)] = c.pages[PageId(10)]; }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(10)].clear(); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(10)].resize(9, c.pages[PageId(10)][0]); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(10)].push_back(c.pages[PageId(10)][1]); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(10)].pop_back(); }), ErrorCode::kInternal);  // no base part
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(10)][0] = PageAddress::Make(8, 1 << 20, 10); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(10)][0] = PageAddress::Make(8, 128, 10); }), ErrorCode::kInternal);
  EXPECT_EQ(wrong([](C& c) { c.pages[PageId(10)][0] = PageAddress(); }), ErrorCode::kInternal);
  // Records out of order.
  const CheckpointContent content = ContentWith(7, 5);
  const auto writer = std::move(*CheckpointWriter::Create(*storage_, "/dc", content.head));
  ASSERT_TRUE(AddAll(*writer, content).ok());
  EXPECT_EQ(writer->AddTable({.id = TableId(9), .root = PageId(40), .name = "late"}).code(), ErrorCode::kInternal);
  EXPECT_EQ(writer->AddSegment(content.segments[0]).code(), ErrorCode::kInternal);
  EXPECT_EQ(writer->Finish().code(), ErrorCode::kInternal);  // the first error stays
}

TEST_F(CheckpointFileTest, EachRootOfManyTablesNeedsAnImage) {
  CheckpointContent content = ContentWith(7, 3000);
  content.tables.clear();
  content.dropped_ids_behind.clear();
  for (uint32_t id = 1; id <= 300; ++id) content.tables.push_back({{TableId(id), PageId(70 * id)}, "t"});
  ASSERT_EQ(Write(content).ToString(), "OK");
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_TRUE(*read == content);
  for (const uint32_t id : {1u, 2u, 77u, 300u}) {
    CheckpointContent without = content;
    without.pages.erase(PageId(70 * id));
    const Status status = Write(without);
    EXPECT_EQ(status, ErrorCode::kInternal);
    EXPECT_NE(status.message().find(Concat("root ", 70 * id, " has no image")), std::string::npos) << status.ToString();
  }
}

TEST_F(CheckpointFileTest, AVisitorThatFailsEndsTheReading) {
  class Fails : public CheckpointKeeper {
   public:
    Status OnPage(PageId page, std::span<const PageAddress>) override {
      return page == PageId(30) ? DEUT_ERROR(kResourceExhausted, "no room") : Status::Ok();
    }
  };
  ASSERT_TRUE(Write(ContentWith(7, 5)).ok());
  Fails visitor;
  EXPECT_EQ(ReadCheckpoint(*storage_, "/dc", CheckpointNumber(7), kDc, &visitor).status().code(),
            ErrorCode::kResourceExhausted);
  EXPECT_TRUE(ReadCheckpoint(*storage_, "/dc", CheckpointNumber(7), kDc, nullptr).ok());
}

// Any fault at any operation leads to an error or to the whole checkpoint, never to a part of one under its name.
TEST_F(CheckpointFileTest, FaultsAtEveryOperation) {
  const CheckpointContent content = ContentWith(7, 4000);
  for (const auto action : {DiskFault::Action::kIoError, DiskFault::Action::kNoSpace, DiskFault::Action::kShort,
                            DiskFault::Action::kFlipBit}) {
    uint64_t struck = 0;
    for (uint64_t skip = 0;; ++skip) {
      const int fault =
          disk_.AddFault({.action = action,
                          .kinds = action == DiskFault::Action::kNoSpace ? kDiskWrite | kDiskName : kDiskAny,
                          .skip = skip,
                          .count = 1});
      const Status written = Write(content);
      const bool hit = disk_.hits(fault) > 0;
      disk_.RemoveAllFaults();
      if (!hit) break;
      ++struck;
      const auto read = Read();
      if (written.ok()) {
        // The flipped bit was only in bytes read back, or in bytes that do not count.
        EXPECT_NE(action, DiskFault::Action::kIoError);
        EXPECT_TRUE(read.ok() && *read == content) << skip;
      } else if (action == DiskFault::Action::kNoSpace) {
        EXPECT_EQ(written.code(), ErrorCode::kResourceExhausted);
      }
      if (read.ok()) EXPECT_TRUE(*read == content);
      EXPECT_TRUE(read.ok() || read.status() == ErrorCode::kNotFound) << read.status().ToString();
      for (const std::string& name : Names()) {
        EXPECT_TRUE(storage_->Remove("/dc/" + name).ok());
        // A temporary file stays only if it could not be removed.
        EXPECT_FALSE(name.ends_with(".tmp") && action == DiskFault::Action::kNoSpace);
      }
    }
    EXPECT_GT(struck, 4u);
  }
}

TEST(CheckpointName, IsItsNumber) {
  EXPECT_EQ(CheckpointName(CheckpointNumber(0xAB12)), "checkpoint-00000000ab12");
  CheckpointNumber number;
  EXPECT_TRUE(ParseCheckpointName("checkpoint-00000000ab12", &number));
  EXPECT_EQ(number, CheckpointNumber(0xAB12));
  for (const std::string_view wrong :
       {"", "checkpoint-", "checkpoint-00000000ab1", "checkpoint-00000000ab123", "checkpoint-00000000ab12.tmp",
        "checkpoint-000000000000", "checkpoint-00000000AB12"}) {
    EXPECT_FALSE(ParseCheckpointName(wrong, &number)) << wrong;
  }
}

}  // namespace
}  // namespace deut::dc
