#include "tc/log_format/block_format.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/testing/test_points.h"
#include "tc/log_format/record_codec.h"

namespace deut::tc {
namespace {

constexpr uint32_t kMagic = 0x474C5244;  // "DRLG"
// The checksum does not cover magic and checksum.
constexpr size_t kUncoveredBytes = 8;
constexpr std::string_view kSegmentPrefix = "log-";
constexpr size_t kSegmentDigits = 20;
constexpr size_t kStateHeaderBytes = 56;
constexpr size_t kSealAt = 80;
// A torn block is torn at a multiple of this many bytes.
constexpr size_t kTornBytes = 512;
constexpr size_t kStatePositionBytes = 24;

static_assert(kBlockHeaderBytes + kStateHeaderBytes + kMaxKnownDcs * (kStatePositionBytes + sizeof(uint64_t)) <=
              kSegmentHeaderBytes);

Status Damaged(const std::string& what) { return Status(ErrorCode::kCorruption, what); }

// The seal hashes the header alone, from the version on. It cannot hash the checksum, because the checksum covers the
// seal. Place and epoch of a block are unique in a log, so a seal is good for one block.
uint64_t SealOf(const char* block, const SipHashKey& key) {
  return SipHash(key, std::string_view(block + kUncoveredBytes, kSealAt - kUncoveredBytes));
}

}  // namespace

uint32_t SealBlock(const BlockHeader& header, const SipHashKey& key, char* block) {
  DEUT_CHECK(header.block_bytes == BlockBytesFor(header.payload_bytes));
  // ReadBlockHeader and BlockWindow take no other blocks.
  DEUT_DCHECK(header.payload_bytes % kRecordAlignment == 0);
  DEUT_DCHECK(header.offset % kBlockAlignment == 0);
  StoreU32(block, kMagic);
  StoreU16(block + 8, kLogFormatVersion);
  StoreU16(block + 10, static_cast<uint16_t>(header.kind));
  StoreU32(block + 12, header.block_bytes);
  StoreU32(block + 16, header.payload_bytes);
  StoreU32(block + 20, header.predecessor);
  StoreU64(block + 24, header.first_lsn.value);
  StoreU64(block + 32, header.durable.value);
  StoreU64(block + 40, header.segment);
  StoreU64(block + 48, header.offset);
  StoreU64(block + 56, header.tc.value);
  StoreU64(block + 64, header.epoch.value);
  StoreU64(block + 72, header.nonce);
  StoreU64(block + kSealAt, SealOf(block, key));
  const size_t used = kBlockHeaderBytes + header.payload_bytes;
  std::memset(block + used, 0, header.block_bytes - used);
  const uint32_t checksum = Crc32c(block + kUncoveredBytes, header.block_bytes - kUncoveredBytes);
  StoreU32(block + 4, checksum);
  return checksum;
}

bool IsSealed(const char* block, const SipHashKey& key) {
  return LoadU64(block + kSealAt) == SealOf(block, key) || DEUT_OMITTED("D2.seal");
}

Result<FirstBlock> UnderstandFirstBlock(const char* bytes, size_t size, uint64_t number, BlockHeader* header) {
  if (std::all_of(bytes, bytes + std::min(size, kTornBytes), [](char byte) { return byte == 0; }))
    return FirstBlock::kUnwritten;
  if (size < kBlockAlignment || LoadU32(bytes) != kMagic)
    return Damaged("the file does not begin as a segment of a redo log does");
  const uint32_t block_bytes = LoadU32(bytes + 12);
  const bool whole = block_bytes >= kBlockAlignment && block_bytes <= size &&
                     LoadU32(bytes + 4) == Crc32c(bytes + kUncoveredBytes, block_bytes - kUncoveredBytes);
  const uint16_t version = LoadU16(bytes + 8);
  if (version != kLogFormatVersion) {
    const std::string versions = Concat("format version ", version, " of the redo log, this program reads and writes ",
                                        "version ", kLogFormatVersion);
    if (!whole) return Damaged(Concat("the first block is damaged; it says ", versions));
    return DEUT_ERROR(kVersionMismatch, "the segment is of ", versions);
  }
  if (!whole) return FirstBlock::kBroken;
  const uint64_t named = LoadU64(bytes + 40);
  if (named > number) return Damaged(Concat("the file is segment ", named, " of a redo log under another name"));
  // A spare still has the header of the segment that it was before.
  DEUT_RETURN_IF_ERROR(ReadBlockHeader(bytes, named, 0, size, header));
  return FirstBlock::kWhole;
}

Status ReadBlockHeader(const char* bytes, uint64_t segment, uint64_t offset, uint64_t room, BlockHeader* header) {
  if (LoadU32(bytes) != kMagic) return Damaged("no block begins here");
  const uint16_t version = LoadU16(bytes + 8);
  if (version != kLogFormatVersion) {
    return Damaged(Concat("a block of format version ", version, ", this program reads version ", kLogFormatVersion));
  }
  header->kind = static_cast<BlockKind>(LoadU16(bytes + 10));
  header->block_bytes = LoadU32(bytes + 12);
  header->payload_bytes = LoadU32(bytes + 16);
  header->predecessor = LoadU32(bytes + 20);
  header->first_lsn = Lsn(LoadU64(bytes + 24));
  header->durable = Lsn(LoadU64(bytes + 32));
  header->segment = LoadU64(bytes + 40);
  header->offset = LoadU64(bytes + 48);
  header->tc = TcId(LoadU64(bytes + 56));
  header->epoch = TcEpoch(LoadU64(bytes + 64));
  header->nonce = LoadU64(bytes + 72);
  header->seal = LoadU64(bytes + kSealAt);
  // A block from an earlier use of the file, or one that the disk has put elsewhere, is whole by its checksum.
  if (header->segment != segment || header->offset != offset) return Damaged("a block of another place");
  const bool first = header->kind == BlockKind::kSegmentHeader;
  if (first != (offset == 0) || (!first && header->kind != BlockKind::kRecords)) return Damaged("wrong kind of block");
  if (header->payload_bytes % kRecordAlignment != 0 || header->payload_bytes == 0 ||
      header->block_bytes != BlockBytesFor(header->payload_bytes) || header->block_bytes > room ||
      (first && header->block_bytes != kSegmentHeaderBytes)) {
    return Damaged("lengths of the block do not fit");
  }
  if (header->first_lsn.value % kRecordAlignment != 0 || header->first_lsn < kFirstLsn ||
      header->durable > header->first_lsn || header->first_lsn.value > kMaxLogNumber) {
    return Damaged("positions of the block do not fit");
  }
  if (header->epoch.value == 0 || header->epoch.value > kMaxLogNumber || header->segment > kMaxLogNumber) {
    return Damaged(
        Concat("epoch ", header->epoch.value, " or segment ", header->segment, " is none that a log gets to"));
  }
  return Status::Ok();
}

Result<uint32_t> VerifyBlock(const char* block, const BlockHeader& header) {
  const uint32_t stored = LoadU32(block + 4);
  if (DEUT_OMITTED("log.checksum")) return stored;
  const uint32_t computed = Crc32c(block + kUncoveredBytes, header.block_bytes - kUncoveredBytes);
  if (stored != computed) return Damaged("checksum of the block does not match");
  return computed;
}

void LogState::Apply(const LogRecord& record) {
  switch (record.type) {
    case RecordType::kCommit:
    case RecordType::kNamedCommit:
    case RecordType::kChunk:
    case RecordType::kEndOfEpoch:
    case RecordType::kOutcomeHorizon:
    case RecordType::kTrimmed:
      return;
    case RecordType::kLowWater:
      low_water = std::max(low_water, record.timestamp);
      return;
    case RecordType::kReserveTimestamps:
      reserved = std::max(reserved, record.timestamp);
      return;
    case RecordType::kEpochStart:
      tc = record.tc;
      epoch = record.epoch;
      nonce = record.nonce;
      return;
    case RecordType::kRedoStart:
      redo_start = record.redo_start;
      return;
    case RecordType::kKnownDc: {
      const auto place = std::ranges::lower_bound(known_dcs, record.dc);
      if (place == known_dcs.end() || *place != record.dc) known_dcs.insert(place, record.dc);
      return;
    }
  }
}

uint32_t EncodeSegmentHeader(BlockHeader header, const LogState& state, uint64_t segment_bytes, char* block) {
  DEUT_CHECK(state.redo_start.stable.size() <= kMaxKnownDcs && state.known_dcs.size() <= kMaxKnownDcs);
  char* out = block + kBlockHeaderBytes;
  StoreU64(out, segment_bytes);
  StoreU64(out + 8, state.reserved.value);
  StoreU64(out + 16, state.low_water.value);
  StoreU64(out + 24, state.redo_start.lsn.value);
  StoreU32(out + 32, static_cast<uint32_t>(state.redo_start.stable.size()));
  StoreU32(out + 36, static_cast<uint32_t>(state.known_dcs.size()));
  StoreU64(out + 40, state.key.low);
  StoreU64(out + 48, state.key.high);
  // These lists are all that a start knows of the data components once the segments before this one are trimmed.
  out += kStateHeaderBytes;
  for (const DcPosition& position : state.redo_start.stable) {
    StoreU64(out, position.dc.value);
    StoreU64(out + 8, position.stable.commit.value);
    StoreU64(out + 16, uint64_t{position.stable.sequence});
    out += kStatePositionBytes;
  }
  for (const DcId dc : state.known_dcs) {
    StoreU64(out, dc.value);
    out += sizeof(uint64_t);
  }
  header.kind = BlockKind::kSegmentHeader;
  header.payload_bytes = static_cast<uint32_t>(out - block - kBlockHeaderBytes);
  header.block_bytes = kSegmentHeaderBytes;
  header.offset = 0;
  return SealBlock(header, state.key, block);
}

Status DecodeSegmentHeader(const char* block, const BlockHeader& header, LogState* state, uint64_t* segment_bytes) {
  const char* in = block + kBlockHeaderBytes;
  if (header.payload_bytes < kStateHeaderBytes) return Damaged("segment header cut off");
  *state = LogState();
  state->tc = header.tc;
  state->epoch = header.epoch;
  state->nonce = header.nonce;
  *segment_bytes = LoadU64(in);
  state->reserved = Timestamp(LoadU64(in + 8));
  state->low_water = Timestamp(LoadU64(in + 16));
  state->redo_start.lsn = Lsn(LoadU64(in + 24));
  const size_t positions = LoadU32(in + 32);
  const size_t dcs = LoadU32(in + 36);
  state->key = SipHashKey{.low = LoadU64(in + 40), .high = LoadU64(in + 48)};
  if (!IsSealed(block, state->key)) return Damaged("the seal of the segment header is not of the key in it");
  if (positions > kMaxKnownDcs || dcs > kMaxKnownDcs ||
      header.payload_bytes != kStateHeaderBytes + positions * kStatePositionBytes + dcs * sizeof(uint64_t)) {
    return Damaged("segment header with wrong counts");
  }
  in += kStateHeaderBytes;
  for (size_t i = 0; i < positions; ++i, in += kStatePositionBytes) {
    state->redo_start.stable.push_back(
        {.dc = DcId(LoadU64(in)), .stable = Position{.commit = Lsn(LoadU64(in + 8)), .sequence = LoadU32(in + 16)}});
  }
  for (size_t i = 0; i < dcs; ++i, in += sizeof(uint64_t)) state->known_dcs.push_back(DcId(LoadU64(in)));
  return Status::Ok();
}

std::string SegmentName(uint64_t number) { return absl::StrFormat("log-%020u", number); }

bool ParseSegmentName(std::string_view name, uint64_t* number) {
  if (name.size() != kSegmentPrefix.size() + kSegmentDigits || !name.starts_with(kSegmentPrefix)) return false;
  uint64_t value = 0;
  for (const char digit : name.substr(kSegmentPrefix.size())) {
    if (digit < '0' || digit > '9' || value > (UINT64_MAX - 9) / 10) return false;
    value = value * 10 + static_cast<uint64_t>(digit - '0');
  }
  if (value == 0 || value > kMaxLogNumber) return false;
  *number = value;
  return true;
}

}  // namespace deut::tc
