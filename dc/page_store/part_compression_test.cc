#include "dc/page_store/part_compression.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/base/compression.h"
#include "common/base/concat.h"
#include "common/coding/fixed.h"
#include "common/io/aligned_buffer.h"
#include "common/runtime/random.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

class PartCompression : public ::testing::TestWithParam<Compression> {
 protected:
  std::string Packed(std::string_view content) {
    AlignedBuffer room;
    const auto packed = PackContent(GetParam(), content, &room);
    EXPECT_TRUE(packed.has_value());
    return std::string(packed.value_or(""));
  }
};

INSTANTIATE_TEST_SUITE_P(Algorithms, PartCompression, ::testing::Values(Compression::kLz4, Compression::kZstd),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

// Text as a page has it: similar keys, and values that repeat in part.
std::string Compressible(size_t bytes) {
  Random random(5);
  std::string content;
  while (content.size() < bytes) content += Concat("customer/", random.Below(100'000), "/name=some words;");
  content.resize(bytes);
  return content;
}

PartView Part(std::string_view payload) {
  PartView part;
  part.header = {.kind = PartKind::kBase, .page = PageId(77), .table = TableId(5), .packed = true};
  part.address = PageAddress::Make(3, 4096, PartBytes(payload.size()));
  part.payload = payload;
  return part;
}

TEST_P(PartCompression, PackedContentIsUnpacked) {
  for (const size_t bytes : {size_t{300}, size_t{4096}, size_t{32 << 10}, size_t{3 << 20}}) {
    const std::string content = Compressible(bytes);
    const std::string packed = Packed(content);
    EXPECT_LE(PartBytesInUnits(packed.size()) * 8, PartBytesInUnits(bytes) * 7) << bytes;
    const auto header = ReadPackedHeader(packed);
    ASSERT_TRUE(header.ok()) << header.status().ToString();
    EXPECT_EQ(header->algorithm, GetParam());
    EXPECT_EQ(header->content_bytes, bytes);
    AlignedBuffer room;
    const auto unpacked = UnpackContent(packed, &room);
    ASSERT_TRUE(unpacked.ok()) << unpacked.status().ToString();
    EXPECT_TRUE(*unpacked == content);
  }
}

TEST_P(PartCompression, ContentThatDoesNotBecomeAnEighthSmallerIsNotPacked) {
  AlignedBuffer room;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{80}, size_t{5000}, size_t{100'000}}) {
    EXPECT_FALSE(PackContent(GetParam(), PayloadOf(PageId(1), 1, bytes), &room).has_value()) << bytes;
  }
  // A tenth of it could be saved.
  const std::string mostly_random = PayloadOf(PageId(1), 2, 90'000) + std::string(10'000, 'x');
  EXPECT_FALSE(PackContent(GetParam(), mostly_random, &room).has_value());
  const std::string less_random = PayloadOf(PageId(1), 2, 80'000) + std::string(20'000, 'x');
  EXPECT_TRUE(PackContent(GetParam(), less_random, &room).has_value());
  // Packing saves nothing on storage if the content fits one unit anyway.
  EXPECT_FALSE(PackContent(GetParam(), std::string(PageAddress::kUnitBytes - kPartHeaderBytes, 'x'), &room));
}

TEST_P(PartCompression, APackedPartIsDecodedPackedAndThenUnpacked) {
  const std::string content = Compressible(20'000);
  const std::string packed = Packed(content);
  PartView part = Part(packed);
  std::string bytes(PartBytesInUnits(packed.size()), '\0');
  EncodePart(part.header, part.address, packed, bytes.data());
  const auto decoded = DecodePart(bytes, part.address, PageId(77), "f");
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_TRUE(decoded->header.packed);
  EXPECT_EQ(decoded->compression, GetParam());
  EXPECT_EQ(decoded->payload, packed);
  AlignedBuffer room;
  const auto unpacked = UnpackPart(*decoded, &room, "f");
  ASSERT_TRUE(unpacked.ok()) << unpacked.status().ToString();
  EXPECT_FALSE(unpacked->header.packed);
  EXPECT_EQ(unpacked->compression, GetParam());
  EXPECT_TRUE(unpacked->payload == content);
  // The checksum covers the bytes on storage: damage is found before anything is decompressed.
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    ASSERT_EQ(DecodePart(damaged, part.address, PageId(77), "f").status().code(), ErrorCode::kCorruption) << at;
  }
}

// Bytes with a right checksum that are not what a writer makes.
TEST_P(PartCompression, AnyBytesAreRefusedOrUnpackedWithinTheBound) {
  const std::string packed = Packed(Compressible(3000));
  Random random(11);
  AlignedBuffer room;
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = packed;
    for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
      damaged[random.Below(damaged.size())] = static_cast<char>(random.Below(256));
    }
    if (random.OneIn(3)) damaged.resize(random.Below(damaged.size()));
    // A large content is possible; it only makes this test slow.
    if (damaged.size() >= kPackedHeaderBytes) damaged[7] = 0;
    const auto unpacked = UnpackPart(Part(damaged), &room, "dir/base-1.seg");
    if (unpacked.ok()) {
      ASSERT_LE(unpacked->payload.size(), kMaxContentBytes);
    } else {
      ASSERT_EQ(unpacked.status().code(), ErrorCode::kCorruption);
      ASSERT_TRUE(unpacked.status().message().starts_with("dir/base-1.seg: offset 4136: "))
          << unpacked.status().ToString();
    }
  }
}

TEST_P(PartCompression, AWrongLengthOfTheContentIsRefusedWithoutAllocatingMoreThanTheBound) {
  const std::string packed = Packed(Compressible(3000));
  for (const uint32_t claimed : {0u, 1u, 2999u, 3001u, static_cast<uint32_t>(kMaxContentBytes),
                                 static_cast<uint32_t>(kMaxContentBytes + 1), UINT32_MAX}) {
    std::string changed = packed;
    StoreU32(changed.data() + 4, claimed);
    AlignedBuffer room;
    EXPECT_EQ(UnpackContent(changed, &room).status().code(), ErrorCode::kCorruption) << claimed;
    EXPECT_LE(room.size(), RoundUpToIo(kMaxContentBytes));
    if (claimed == 0 || claimed > kMaxContentBytes) EXPECT_EQ(room.size(), 0u) << claimed;
  }
}

TEST_P(PartCompression, UnknownAlgorithmsFlagsAndShortPayloadsAreRefused) {
  const std::string packed = Packed(Compressible(3000));
  struct Case {
    size_t at;
    char value;
  };
  AlignedBuffer room;
  for (const Case each : {Case{0, 0}, {0, 1}, {0, 4}, {0, '\xFF'}, {1, 1}, {2, 1}, {3, 1}}) {
    std::string changed = packed;
    changed[each.at] = each.value;
    EXPECT_EQ(ReadPackedHeader(changed).status().code(), ErrorCode::kCorruption) << each.at;
    EXPECT_EQ(UnpackContent(changed, &room).status().code(), ErrorCode::kCorruption) << each.at;
  }
  for (size_t size = 0; size <= kPackedHeaderBytes; ++size) {
    EXPECT_EQ(ReadPackedHeader(packed.substr(0, size)).status().code(), ErrorCode::kCorruption) << size;
  }
  EXPECT_EQ(room.size(), 0u);
}

// The library would also take a sequence of frames, and frames without content.
TEST(PartCompressionZstd, OnlyOneFrameIsAccepted) {
  const std::string content = Compressible(3000);
  AlignedBuffer room;
  const std::string packed(*PackContent(Compression::kZstd, content, &room));
  const std::string frame = packed.substr(kPackedHeaderBytes);
  const std::string skippable("\x50\x2A\x4D\x18\x00\x00\x00\x00", 8);
  for (const std::string& frames : {frame + frame, skippable + frame, frame + skippable}) {
    EXPECT_EQ(UnpackContent(packed.substr(0, kPackedHeaderBytes) + frames, &room).status().code(),
              ErrorCode::kCorruption);
  }
  EXPECT_TRUE(UnpackContent(packed, &room).ok());
}

// Stored samples of format version 3: the bytes that any version of the libraries has to unpack.
TEST(PartCompressionFormat, StoredPayloadsAreUnpacked) {
  AlignedBuffer room;
  // 500 times 'a': one literal, a match of 494 bytes, and the last five literals.
  const std::string lz4("\x02\x00\x00\x00\xF4\x01\x00\x00\x1F\x61\x01\x00\xFF\xDC\x50\x61\x61\x61\x61\x61", 20);
  // One frame with one block of a repeated byte.
  const std::string zstd("\x03\x00\x00\x00\xF4\x01\x00\x00\x28\xB5\x2F\xFD\x60\xF4\x00\xA3\x0F\x00\x61", 19);
  for (const std::string& packed : {lz4, zstd}) {
    const auto unpacked = UnpackContent(packed, &room);
    ASSERT_TRUE(unpacked.ok()) << unpacked.status().ToString();
    EXPECT_EQ(*unpacked, std::string(500, 'a'));
  }
}

}  // namespace
}  // namespace deut::dc
