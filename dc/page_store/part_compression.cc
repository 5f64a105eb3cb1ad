#include "dc/page_store/part_compression.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "common/base/check.h"
#include "common/coding/fixed.h"
#include "dc/page_store/part_format.h"

namespace deut::dc {
namespace {

constexpr size_t kZeroAt = 1;
constexpr size_t kContentBytesAt = 4;
static_assert(kContentBytesAt + sizeof(uint32_t) == kPackedHeaderBytes);
static_assert(kMaxContentBytes <= LZ4_MAX_INPUT_SIZE);

constexpr int kZstdLevel = 1;

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// The largest packed payload with which the part has an eighth fewer bytes on storage; 0: there is none.
size_t MostPackedBytes(size_t content_bytes) {
  const uint64_t units = PartBytesInUnits(content_bytes) / PageAddress::kUnitBytes;
  const uint64_t most = units * 7 / 8 * PageAddress::kUnitBytes;
  return most <= kPartHeaderBytes + kPackedHeaderBytes ? 0 : most - kPartHeaderBytes;
}

// Both return the number of compressed bytes; 0: they do not fit.
size_t CompressLz4(std::string_view content, char* out, size_t room) {
  return static_cast<size_t>(
      LZ4_compress_default(content.data(), out, static_cast<int>(content.size()), static_cast<int>(room)));
}

size_t CompressZstd(std::string_view content, char* out, size_t room) {
  static thread_local const std::unique_ptr<ZSTD_CCtx, FreeZstd> context(ZSTD_createCCtx());
  DEUT_CHECK(context != nullptr);
  const size_t bytes = ZSTD_compressCCtx(context.get(), out, room, content.data(), content.size(), kZstdLevel);
  return ZSTD_isError(bytes) ? 0 : bytes;
}

// Both return whether `compressed` is exactly `size` bytes of content.
bool DecompressLz4(std::string_view compressed, char* out, size_t size) {
  return LZ4_decompress_safe(compressed.data(), out, static_cast<int>(compressed.size()), static_cast<int>(size)) ==
         static_cast<int>(size);
}

// Only one frame of the present format is accepted. Otherwise the library would also take frames of its earlier formats,
// and frames without content.
bool DecompressZstd(std::string_view compressed, char* out, size_t size) {
  if (compressed.size() < sizeof(uint32_t) || LoadU32(compressed.data()) != ZSTD_MAGICNUMBER) return false;
  if (ZSTD_findFrameCompressedSize(compressed.data(), compressed.size()) != compressed.size()) return false;
  static thread_local const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  DEUT_CHECK(context != nullptr);
  // The output is the window, so a frame cannot make the library allocate one.
  return ZSTD_decompressDCtx(context.get(), out, size, compressed.data(), compressed.size()) == size;
}

}  // namespace

std::optional<std::string_view> PackContent(Compression algorithm, std::string_view content, AlignedBuffer* room) {
  DEUT_CHECK(algorithm != Compression::kNone);
  const size_t most = MostPackedBytes(content.size());
  if (most == 0 || content.size() > kMaxContentBytes) return std::nullopt;
  if (room->size() < most) *room = AlignedBuffer(most);
  char* const out = room->data();
  const size_t left = most - kPackedHeaderBytes;
  const size_t bytes = algorithm == Compression::kLz4 ? CompressLz4(content, out + kPackedHeaderBytes, left)
                                                      : CompressZstd(content, out + kPackedHeaderBytes, left);
  if (bytes == 0) return std::nullopt;
  StoreU32(out, 0);
  out[0] = static_cast<char>(algorithm);
  StoreU32(out + kContentBytesAt, static_cast<uint32_t>(content.size()));
  return std::string_view(out, kPackedHeaderBytes + bytes);
}

Result<PackedHeader> ReadPackedHeader(std::string_view packed) {
  if (packed.size() <= kPackedHeaderBytes) {
    return DEUT_ERROR(kCorruption, packed.size(), " bytes are too few for a compressed page part");
  }
  const uint8_t algorithm = static_cast<uint8_t>(packed[0]);
  const std::string_view zeros = packed.substr(kZeroAt, kContentBytesAt - kZeroAt);
  if (!IsKnownCompression(algorithm) || Compression(algorithm) == Compression::kNone ||
      std::ranges::any_of(zeros, [](char c) { return c != 0; })) {
    return DEUT_ERROR(kCorruption, "a page part that is compressed in the unknown way ", int{algorithm});
  }
  const uint32_t content_bytes = LoadU32(packed.data() + kContentBytesAt);
  if (content_bytes == 0 || content_bytes > kMaxContentBytes) {
    return DEUT_ERROR(kCorruption, "a compressed page part with ", content_bytes, " bytes of content; 1 to ",
                      kMaxContentBytes, " are possible");
  }
  return PackedHeader{.algorithm = Compression(algorithm), .content_bytes = content_bytes};
}

Result<std::string_view> UnpackContent(std::string_view packed, AlignedBuffer* room) {
  DEUT_ASSIGN_OR_RETURN(const PackedHeader header, ReadPackedHeader(packed));
  const size_t size = header.content_bytes;
  if (room->size() < size) *room = AlignedBuffer(size);
  const std::string_view compressed = packed.substr(kPackedHeaderBytes);
  const bool whole = header.algorithm == Compression::kLz4 ? DecompressLz4(compressed, room->data(), size)
                                                           : DecompressZstd(compressed, room->data(), size);
  if (!whole) {
    return DEUT_ERROR(kCorruption, "the page part, compressed with ", NameOf(header.algorithm),
                      ", does not decompress to its ", size, " bytes of content");
  }
  return std::string_view(room->data(), size);
}

}  // namespace deut::dc
