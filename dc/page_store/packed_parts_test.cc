// Packed parts (part_compression.h) in a store: appended, copied, read.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/compression.h"
#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "dc/page_store/part_run.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/segment_store_fixture.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

using PackedParts = SegmentStoreTest;

std::string Compressible(PageId page, size_t bytes) {
  std::string content;
  while (content.size() < bytes) content += Concat("page/", page.value, "/record/", content.size(), "=some words;");
  return content;
}

TEST_F(PackedParts, ContentIsPackedIfThatSavesSpaceAndReadBackUnpacked) {
  auto appender = NewAppender();
  const std::string plain = PayloadOf(PageId(9), 1, 8000);  // it cannot be compressed
  std::vector<std::pair<PageAddress, std::string>> written;
  uint32_t page = 1;
  for (const Compression compression : {Compression::kLz4, Compression::kZstd, Compression::kNone}) {
    for (const std::string& content : {Compressible(PageId(page), 8000), plain, Compressible(PageId(page), 200'000)}) {
      const auto address = appender->AppendContent(BaseHeader(PageId(page)), content, compression);
      ASSERT_TRUE(address.ok()) << address.status().ToString();
      const bool packed = compression != Compression::kNone && content != plain;
      EXPECT_EQ(address->length_bound() < content.size() * 7 / 8, packed) << NameOf(compression);
      written.emplace_back(*address, content);
      ++page;
    }
  }
  ASSERT_TRUE(appender->Write().ok());
  PartBuffer buffer;
  PartRun run;
  for (size_t i = 0; i < written.size(); ++i) {
    const auto& [address, content] = written[i];
    const PageId id(static_cast<uint32_t>(i + 1));
    ASSERT_TRUE(store().Read(address, id, &buffer).ok());
    EXPECT_TRUE(buffer.part().payload == content);
    EXPECT_FALSE(buffer.part().header.packed);
    ASSERT_TRUE(store().BeginReadRun(address, address, &run).ok());
    run.request().transferred =
        *run.request().file->Read(run.request().offset, run.request().data, run.request().bytes);
    ASSERT_TRUE(store().EndReadRun(&run).ok());
    const auto part = run.Part(address, id);
    ASSERT_TRUE(part.ok()) << part.status().ToString();
    EXPECT_TRUE(part->payload == content);
    run.Reset();
  }
  // Only the packed parts count.
  const StoreTotals totals = store().totals();
  uint64_t before = 0;
  for (const size_t i : {0, 2, 3, 5}) before += written[i].second.size();
  EXPECT_EQ(totals.bytes_before_compression, before);
  EXPECT_GT(totals.bytes_after_compression, 0u);
  EXPECT_LT(totals.bytes_after_compression, before / 2);
}

TEST_F(PackedParts, APackedPartIsCopiedAsItIs) {
  auto appender = NewAppender(), copier = NewAppender();
  const std::string content = Compressible(PageId(1), 8000);
  const auto original = appender->AppendContent(BaseHeader(PageId(1)), content, Compression::kZstd);
  ASSERT_TRUE(original.ok() && appender->Write().ok());
  const uint64_t before = store().totals().bytes_before_compression;
  Result<PageAddress> copy = Status(ErrorCode::kInternal, "no part was found");
  ASSERT_TRUE(store()
                  .ForEachPart(original->segment(),
                               [&](const PartView& part) {
                                 EXPECT_TRUE(part.header.packed);
                                 EXPECT_EQ(part.compression, Compression::kZstd);
                                 copy = copier->Append(part.header, part.payload);
                                 return copy.status();
                               })
                  .ok());
  ASSERT_TRUE(copier->Write().ok());
  EXPECT_EQ(copy->length_bound(), original->length_bound());
  EXPECT_EQ(store().totals().bytes_before_compression, before);  // nothing was compressed again
  PartBuffer buffer;
  ASSERT_TRUE(store().Read(*copy, PageId(1), &buffer).ok());
  EXPECT_TRUE(buffer.part().payload == content);
}

// An earlier program refuses a segment with packed parts by name, and reads all others.
TEST_F(PackedParts, PackedPartsLieOnlyInSegmentsWhoseHeaderSaysSo) {
  auto appender = NewAppender();
  const auto packed_parts = [&](PageAddress address) {
    const auto file = fixture_.storage->Open(
        Concat(kTestPages, "/", SegmentName(SegmentKind::kBase, address.segment())), {.direct = true});
    EXPECT_TRUE(file.ok());
    AlignedBuffer block(kSegmentHeaderBytes);
    EXPECT_TRUE((*file)->Read(0, block.data(), block.size()).ok());
    return DecodeSegmentHeader(std::string_view(block.data(), block.size()), "f")->packed_parts;
  };
  const auto add = [&](uint32_t page, Compression compression) {
    const auto address =
        appender->AppendContent(BaseHeader(PageId(page)), Compressible(PageId(page), 4000), compression);
    EXPECT_TRUE(address.ok());
    return *address;
  };
  const PageAddress first = add(1, Compression::kNone);
  ASSERT_TRUE(appender->Write().ok());
  const PageAddress second = add(2, Compression::kNone);
  const PageAddress packed = add(3, Compression::kLz4);
  const PageAddress behind = add(4, Compression::kNone);
  ASSERT_TRUE(appender->Write().ok());
  EXPECT_EQ(first.segment(), second.segment());
  EXPECT_NE(second.segment(), packed.segment());
  EXPECT_EQ(packed.segment(), behind.segment());
  EXPECT_FALSE(packed_parts(first));
  EXPECT_TRUE(packed_parts(packed));
  // Later segments say it from the start, so that none is closed early again.
  PageAddress last = behind;
  while (last.segment() == behind.segment()) last = add(5, Compression::kNone);
  ASSERT_TRUE(appender->Write().ok());
  EXPECT_TRUE(packed_parts(last));
  EXPECT_EQ(add(6, Compression::kLz4).segment(), last.segment());
  ASSERT_TRUE(appender->Write().ok());
  PartBuffer buffer;
  for (const auto& [address, page] : {std::pair(first, 1u), std::pair(second, 2u), std::pair(packed, 3u)}) {
    EXPECT_TRUE(store().Read(address, PageId(page), &buffer).ok());
    EXPECT_TRUE(buffer.part().payload == Compressible(PageId(page), 4000));
  }
}

}  // namespace
}  // namespace deut::dc
