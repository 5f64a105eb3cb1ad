#include "tc/spill/spill_block.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"

namespace deut::tc {
namespace {

constexpr uint32_t kMagic = 0x31425053;  // "SPB1"
constexpr std::string_view kMagicText = "SPB1";
constexpr size_t kVersionAt = 3;
constexpr size_t kChecksumAt = 4;
constexpr size_t kCoveredFrom = 8;
constexpr size_t kBytesAt = 8;
constexpr size_t kVersionsAt = 12;
constexpr size_t kOffsetAt = 16;
constexpr size_t kHeaderBytes = 24;
constexpr size_t kVersionBytes = 41;

}  // namespace

Status CheckSpillFileFormat(std::string_view bytes, std::string_view path) {
  // Files are not synced: after a loss of power a file may have its name, or its size, and no content.
  if (std::ranges::all_of(bytes, [](char byte) { return byte == 0; })) return Status::Ok();
  if (bytes.starts_with(kMagicText)) return Status::Ok();
  if (bytes.size() > kVersionAt && bytes.starts_with(kMagicText.substr(0, kVersionAt))) {
    return DEUT_ERROR(kVersionMismatch, path, " at offset 0: a spilled run of format version '",
                      bytes.substr(kVersionAt, 1), "', this program reads and writes version '",
                      kMagicText.substr(kVersionAt), "'; nothing was changed");
  }
  return DEUT_ERROR(kCorruption, path, " at offset 0: the file has the name of a spilled run and is none; ",
                    "nothing was changed");
}

void SpillBlockBuilder::Add(const SpilledVersion& version) {
  if (bytes_.empty()) bytes_.resize(kHeaderBytes);
  AppendU32(&bytes_, version.table.value);
  AppendU32(&bytes_, static_cast<uint32_t>(version.key.size()));
  AppendU64(&bytes_, version.timestamp.value);
  AppendU64(&bytes_, version.commit.value);
  AppendU64(&bytes_, version.place.value);
  AppendU32(&bytes_, version.sequence);
  AppendU32(&bytes_, version.value_bytes);
  bytes_.push_back(version.tombstone ? 1 : 0);
  bytes_.append(version.key);
  ++versions_;
}

std::string SpillBlockBuilder::Finish(uint64_t offset) {
  DEUT_CHECK(!empty());  // Decode refuses a block without versions
  DEUT_CHECK(bytes_.size() <= UINT32_MAX);
  std::string block = std::exchange(bytes_, std::string());
  StoreU32(block.data(), kMagic);
  StoreU32(block.data() + kBytesAt, static_cast<uint32_t>(block.size()));
  StoreU32(block.data() + kVersionsAt, std::exchange(versions_, 0));
  StoreU64(block.data() + kOffsetAt, offset);
  StoreU32(block.data() + kChecksumAt, Crc32c(std::string_view(block).substr(kCoveredFrom)));
  return block;
}

Result<SpillBlock> SpillBlock::Decode(std::string bytes, std::string_view path, uint64_t offset) {
  const auto damaged = [&](std::string_view what) {
    return DEUT_ERROR(kCorruption, path, " at offset ", offset, ": a block of a spilled run with ", what);
  };
  if (bytes.size() < kHeaderBytes) return damaged("too few bytes");
  if (LoadU32(bytes.data()) != kMagic) return damaged("another magic number");
  if (LoadU32(bytes.data() + kChecksumAt) != Crc32c(std::string_view(bytes).substr(kCoveredFrom)))
    return damaged("another checksum than it says");
  if (LoadU32(bytes.data() + kBytesAt) != bytes.size()) return damaged("another length than it says");
  if (LoadU64(bytes.data() + kOffsetAt) != offset) return damaged("another offset than it says");
  SpillBlock block;
  block.bytes_.assign(bytes.begin(), bytes.end());
  const std::string_view all(block.bytes_.data(), block.bytes_.size());
  size_t at = kHeaderBytes;
  for (uint32_t left = LoadU32(bytes.data() + kVersionsAt); left > 0; --left) {
    if (all.size() - at < kVersionBytes) return damaged("a version that ends behind it");
    const char* const from = all.data() + at;
    const uint32_t key_bytes = LoadU32(from + 4);
    at += kVersionBytes;
    if (all.size() - at < key_bytes) return damaged("a key that ends behind it");
    block.versions_.push_back({.table = TableId{LoadU32(from)},
                               .key = all.substr(at, key_bytes),
                               .timestamp = Timestamp{LoadU64(from + 8)},
                               .sequence = LoadU32(from + 32),
                               .tombstone = from[40] != 0,
                               .value_bytes = LoadU32(from + 36),
                               .commit = Lsn{LoadU64(from + 16)},
                               .place = Lsn{LoadU64(from + 24)}});
    at += key_bytes;
  }
  if (at != all.size()) return damaged("bytes behind its last version");
  if (block.versions_.empty()) return damaged("no version");
  return block;
}

}  // namespace deut::tc
