// A log whose blocks are valid by checksums and chain, and whose records hold arbitrary content. Then some of its
// bytes are changed. Every such log is checked and dumped: neither crashes, and both agree with recovery.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/recovery.h"
#include "tc/verify/dump.h"
#include "tc/verify/verify.h"

namespace deut::tc {
namespace {

constexpr uint64_t kSegmentBytes = 32 << 10;
constexpr uint64_t kMaxSegments = 4;

// Input: one byte selects a step. 1 to 8: a record of that type, whose body length is the next byte. 9: the block
// ends. 10: a new segment. 11: a new segment of a new TC epoch. 12: a byte at (segment, 4 KiB block, place) is
// changed at the end.
class Script {
 public:
  explicit Script(std::string_view bytes) : rest_(bytes) {}

  std::unique_ptr<Storage> Play() {
    DEUT_CHECK(storage_->CreateDirectory("/log").ok());
    state_.tc = TcId(1);
    state_.epoch = TcEpoch(1);
    state_.reserved = Timestamp(1);
    state_.redo_start.lsn = kFirstLsn;
    BeginSegment();
    while (!rest_.empty()) Step();
    EndBlock();
    for (const Change& change : changes_) {
      const auto file = Open(1 + change.segment % segment_);
      const uint64_t at =
          change.block % (kSegmentBytes / kBlockAlignment) * kBlockAlignment + uint64_t{change.place} * 16;
      DEUT_CHECK(file->Write(at, &change.value, 1).ok());
    }
    return std::move(storage_);
  }

 private:
  struct Change {
    uint8_t segment, block, place;
    char value;
  };

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }

  void Step() {
    const uint8_t what = Byte() % 13;
    if (what >= 1 && what <= 8) {
      Record(static_cast<RecordType>(what));
    } else if (what == 9) {
      EndBlock();
    } else if (what == 10 || what == 11) {
      EndBlock();
      if (what == 11) state_.epoch = TcEpoch(state_.epoch.value + 1);
      BeginSegment();
    } else if (what == 12) {
      const uint8_t segment = Byte(), block = Byte(), place = Byte();
      changes_.push_back({segment, block, place, static_cast<char>(Byte())});
    }
  }

  void Record(RecordType type) {
    const size_t length = std::min<size_t>(Byte(), rest_.size());
    const RecordWord word = MakeRecordWord(type, length);
    const size_t begin = payload_.size();
    AppendU64(&payload_, EncodeRecordWord(Lsn(lsn_.value + begin), word));
    payload_.append(rest_.substr(0, length));
    rest_.remove_prefix(length);
    payload_.resize(begin + word.bytes, '\0');
    LogRecord record;
    size_t needed = 0;
    if (DecodeRecord(Lsn(lsn_.value + begin), std::string_view(payload_).substr(begin), &record, &needed).ok() &&
        record.type != RecordType::kEpochStart && state_.known_dcs.size() < kMaxKnownDcs) {
      state_.Apply(record);
    }
    if (payload_.size() > 2 * kBlockAlignment) EndBlock();
  }

  void BeginSegment() {
    if (segment_ == kMaxSegments) return;
    ++segment_;
    DEUT_CHECK(Open(segment_)->Allocate(kSegmentBytes).ok());
    std::string block(kSegmentHeaderBytes, '\0');
    offset_ = 0;
    predecessor_ = EncodeSegmentHeader(Header(), state_, kSegmentBytes, block.data());
    Write(block);
  }

  void EndBlock() {
    if (payload_.empty()) return;
    BlockHeader header = Header();
    if (offset_ + header.block_bytes > kSegmentBytes) BeginSegment();
    header = Header();
    if (offset_ + header.block_bytes > kSegmentBytes) return;
    std::string block(header.block_bytes, '\0');
    std::memcpy(block.data() + kBlockHeaderBytes, payload_.data(), payload_.size());
    predecessor_ = SealBlock(header, state_.key, block.data());
    Write(block);
    lsn_ = Lsn(lsn_.value + payload_.size());
    payload_.clear();
  }

  BlockHeader Header() const {
    return BlockHeader{.kind = BlockKind::kRecords,
                       .block_bytes = static_cast<uint32_t>(BlockBytesFor(payload_.size())),
                       .payload_bytes = static_cast<uint32_t>(payload_.size()),
                       .predecessor = predecessor_,
                       .first_lsn = lsn_,
                       .durable = lsn_,
                       .segment = segment_,
                       .offset = offset_,
                       .tc = state_.tc,
                       .epoch = state_.epoch,
                       .nonce = state_.epoch.value};
  }

  std::unique_ptr<File> Open(uint64_t number) {
    auto file = storage_->Open("/log/" + SegmentName(number), {.create = true, .writable = true});
    DEUT_CHECK(file.ok());
    return std::move(*file);
  }

  void Write(const std::string& block) {
    DEUT_CHECK(Open(segment_)->Write(offset_, block.data(), block.size()).ok());
    offset_ += block.size();
  }

  std::string_view rest_;
  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  LogState state_;
  Lsn lsn_ = kFirstLsn;
  uint32_t predecessor_ = 0;
  uint64_t segment_ = 0, offset_ = 0;
  std::string payload_;
  std::vector<Change> changes_;
};

void LookAt(Storage& storage) {
  const Status recovered = RecoverChain(storage, "/log").status();
  DEUT_CHECK(recovered.ok() || recovered == ErrorCode::kCorruption || recovered == ErrorCode::kVersionMismatch);
  const Result<LogReport> report = VerifyLog(storage, "/log", {.max_findings = 10});
  if (recovered == ErrorCode::kVersionMismatch) {
    DEUT_CHECK(report.status() == recovered.code());
    return;
  }
  DEUT_CHECK(report.ok());
  const bool refused = std::ranges::any_of(report->findings, [](const LogFinding& each) { return each.rule.empty(); });
  DEUT_CHECK(refused == !recovered.ok() || report->damages > report->findings.size());
  DEUT_CHECK(ReportText(*report).ends_with(VerdictLine(*report) + "\n"));
  DumpRequest request;
  request.show_key = request.show_value = [](std::string_view bytes) { return std::string(bytes); };
  size_t shown = 0;
  const Status dumped = DumpLog(storage, "/log", request, [&](std::string_view text) { shown += text.size(); });
  DEUT_CHECK(dumped.ok() == recovered.ok());
  DEUT_CHECK(shown > 0 || !dumped.ok());
}

}  // namespace
}  // namespace deut::tc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  deut::tc::LookAt(*deut::tc::Script(bytes).Play());
  return 0;
}
