#include "dc/page_store/checkpoint_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {
namespace {

constexpr CheckpointBlock kBlock{.checkpoint = CheckpointNumber(0x0102030405060708),
                                 .dc = DcId(0x1112131415161718),
                                 .offset = 3 * kCheckpointBlockBytes,
                                 .predecessor = 0x21222324,
                                 .last = true,
                                 .payload_bytes = 5};

std::string Sealed(const CheckpointBlock& block, std::string_view payload) {
  std::string bytes(kCheckpointBlockBytes, '\xEE');  // bytes that an earlier use left
  bytes.replace(kCheckpointBlockHeaderBytes, payload.size(), payload);
  SealCheckpointBlock(block, bytes.data());
  return bytes;
}

// The fields that a reader knows before it reads the block.
CheckpointBlock Expected(const CheckpointBlock& block) {
  return {.checkpoint = block.checkpoint, .dc = block.dc, .offset = block.offset, .predecessor = block.predecessor};
}

// Seals the block again: the checksum fits, something else does not.
Status OpenResealed(std::string bytes) {
  StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8)));
  CheckpointBlock expected = Expected(kBlock);
  return OpenCheckpointBlock(bytes, &expected, "the-file").status();
}

// Expects that the message names the file and this offset in it.
void ExpectAt(const Status& status, uint64_t offset, ErrorCode code = ErrorCode::kCorruption) {
  EXPECT_EQ(status, code);
  EXPECT_TRUE(status.message().starts_with(Concat("the-file: offset ", kBlock.offset + offset, ":")))
      << status.ToString();
}

TEST(CheckpointFormat, GoldenBytes) {
  const std::string bytes = Sealed(kBlock, "hello");
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, 56)),
            "44434b50"
            "53906251"
            "0400"
            "0100"
            "05000000"
            "0807060504030201"
            "1817161514131211"
            "0000030000000000"
            "24232221"
            "00000000"
            "68656c6c6f000000");
  EXPECT_EQ(bytes.substr(56), std::string(kCheckpointBlockBytes - 56, '\0'));
}

TEST(CheckpointFormat, SealedBlocksAreOpened) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, kCheckpointBlockRoom - 1, kCheckpointBlockRoom}) {
    for (const bool last : {false, true}) {
      CheckpointBlock block = kBlock;
      block.last = last;
      block.payload_bytes = static_cast<uint32_t>(size);
      const std::string bytes = Sealed(block, std::string(size, 'p'));
      CheckpointBlock opened = Expected(block);
      // The reader ignores bytes behind the block.
      const auto checksum = OpenCheckpointBlock(bytes + "behind", &opened, "the-file");
      ASSERT_TRUE(checksum.ok()) << checksum.status().ToString();
      EXPECT_EQ(*checksum, LoadU32(bytes.data() + 4));
      EXPECT_EQ(opened.last, last);
      EXPECT_EQ(opened.payload_bytes, size);
      EXPECT_EQ(opened.version, LoadU16(bytes.data() + 8));
    }
  }
}

TEST(CheckpointFormat, EveryFlippedBitIsFound) {
  std::string bytes = Sealed(kBlock, "hello");
  // All bytes of the header and the payload, and samples of the filling.
  for (size_t at = 0; at < bytes.size(); at += at < 64 ? 1 : 509) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      CheckpointBlock expected = Expected(kBlock);
      ExpectAt(OpenCheckpointBlock(bytes, &expected, "the-file").status(), at < 4 ? 0 : 4);
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      if (HasFailure()) return;
    }
  }
}

TEST(CheckpointFormat, TooFewBytesAreNoBlock) {
  const std::string bytes = Sealed(kBlock, "hello");
  for (const size_t size : {size_t{0}, size_t{3}, size_t{47}, size_t{4096}, bytes.size() - 1}) {
    CheckpointBlock expected = Expected(kBlock);
    ExpectAt(OpenCheckpointBlock(std::string_view(bytes).substr(0, size), &expected, "the-file").status(), 0);
  }
}

TEST(CheckpointFormat, AnotherVersionIsSaidSo) {
  std::string bytes = Sealed(kBlock, "hello");
  for (const uint16_t version : {0, 6}) {
    StoreU16(bytes.data() + 8, version);
    ExpectAt(OpenResealed(bytes), 8, ErrorCode::kVersionMismatch);
  }
}

TEST(CheckpointFormat, EarlierVersionsHaveAddressesOfTheEarlierLayout) {
  std::string bytes = Sealed(kBlock, "hello");
  for (const uint16_t version : {1, 2, 3, 4, 5}) {
    StoreU16(bytes.data() + 8, version);
    StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8)));
    CheckpointBlock opened = Expected(kBlock);
    ASSERT_TRUE(OpenCheckpointBlock(bytes, &opened, "the-file").ok());
    const uint64_t raw = (uint64_t{5} << (version >= 3 ? 31 : 23)) | (32 << 8) | 1;
    EXPECT_EQ(CheckpointAddress(opened.version, raw), PageAddress::Make(5, 4096, 100)) << version;
  }
}

TEST(CheckpointFormat, BlocksOfOtherFilesAndPlacesAreRefused) {
  const std::string bytes = Sealed(kBlock, "hello");
  CheckpointBlock other = Expected(kBlock);
  other.checkpoint = CheckpointNumber(9);
  ExpectAt(OpenCheckpointBlock(bytes, &other, "the-file").status(), 16);
  other = Expected(kBlock);
  other.dc = DcId(9);
  ExpectAt(OpenCheckpointBlock(bytes, &other, "the-file").status(), 16);
  other = Expected(kBlock);
  other.predecessor = 9;
  ExpectAt(OpenCheckpointBlock(bytes, &other, "the-file").status(), 40);
  other = Expected(kBlock);
  other.offset = 0;
  EXPECT_EQ(OpenCheckpointBlock(bytes, &other, "the-file").status(), ErrorCode::kCorruption);
}

TEST(CheckpointFormat, HeadersThatDoNotFitAreRefusedAlthoughTheirChecksumDoes) {
  const std::string bytes = Sealed(kBlock, "hello");
  std::string wrong = bytes;
  StoreU16(wrong.data() + 10, 2);  // `last` must be 0 or 1
  ExpectAt(OpenResealed(wrong), 10);
  for (const uint32_t payload : {static_cast<uint32_t>(kCheckpointBlockRoom) + 1, UINT32_MAX}) {
    wrong = bytes;
    StoreU32(wrong.data() + 12, payload);
    ExpectAt(OpenResealed(wrong), 10);
  }
  wrong = bytes;
  wrong[44] = 1;
  ExpectAt(OpenResealed(wrong), 10);
  // Bytes that are not zero behind the payload that the header names.
  wrong = bytes;
  wrong.back() = 1;
  ExpectAt(OpenResealed(wrong), 48 + 5);
  wrong = bytes;
  StoreU32(wrong.data() + 12, 4);
  ExpectAt(OpenResealed(wrong), 48 + 4);
  EXPECT_TRUE(OpenResealed(bytes).ok());
}

TEST(RecordCursor, TakesNumbersAndBytesAndSticksAtTheFirstThatIsNotThere) {
  std::string payload(1, '\x07');
  AppendU32(&payload, 0x01020304);
  AppendU64(&payload, 0x1122334455667788);
  payload += "name";
  RecordCursor cursor(payload);
  EXPECT_EQ(cursor.position(), 0u);
  EXPECT_EQ(cursor.U8(), 7);
  EXPECT_EQ(cursor.U32(), 0x01020304u);
  EXPECT_EQ(cursor.position(), 5u);
  EXPECT_EQ(cursor.U64(), 0x1122334455667788u);
  EXPECT_FALSE(cursor.done());
  EXPECT_EQ(cursor.Bytes(4), "name");
  EXPECT_TRUE(cursor.done());
  EXPECT_FALSE(cursor.failed());
  EXPECT_EQ(cursor.Bytes(0), "");
  EXPECT_FALSE(cursor.failed());
  EXPECT_EQ(cursor.U8(), 0);
  EXPECT_TRUE(cursor.failed());

  for (size_t size = 0; size < sizeof(uint64_t); ++size) {
    RecordCursor few(std::string_view(payload).substr(0, size));
    EXPECT_EQ(few.U64(), 0u);
    EXPECT_TRUE(few.failed());
    // A failed read consumes nothing, and all later reads fail.
    EXPECT_EQ(few.position(), 0u);
    EXPECT_EQ(few.U8(), 0);
    EXPECT_EQ(few.Bytes(0), "");
    EXPECT_TRUE(few.failed());
  }
}

}  // namespace
}  // namespace deut::dc
