#include "tc/verify/chain_audit.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"

namespace deut::tc {
namespace {

constexpr uint64_t kWordBits = 64;

uint32_t LastSequence(const UpdateList& updates) {
  uint32_t last = 0;
  for (const Update& update : updates) last = update.sequence;
  return last;
}

std::string Show(Position position) { return Concat(position.commit.value, "/", position.sequence); }

}  // namespace

template <typename... Pieces>
void ChainAudit::Find(std::string_view rule, const Pieces&... pieces) {
  find_(rule, Concat(directory_, "/", SegmentName(block_.segment), " at offset ", block_.offset, ": ", pieces...));
}

void ChainAudit::OnSegment(const BlockHeader& header, const LogState& repeated) {
  DEUT_CHECK(!end_.has_value());
  const bool first = counts_.segments++ == 0;
  const BlockHeader last = std::exchange(block_, header);
  if (first) {
    first_lsn_ = header.first_lsn;
    first_segment_ = header.segment;
    drawn_before_ = repeated.reserved;
    records_.emplace(first_lsn_);
    commits_.emplace(first_lsn_);
    state_ = repeated;
    ++counts_.starts;
    // Its first record will show whether this segment is the first of its start (CheckLifeBegins).
    life_from_ = Timestamp(1);
  } else {
    before_ = Cut{.lsn = header.first_lsn, .segment = last.segment, .offset = last.offset + last.block_bytes};
    CheckHeader(header, repeated);
  }
  if (header.durable < durable_)
    Find("D2", "the durable LSN goes back from ", durable_.value, " to ", header.durable.value);
  durable_ = std::max(durable_, header.durable);
}

void ChainAudit::CheckHeader(const BlockHeader& header, const LogState& repeated) {
  const auto differs = [&](std::string_view what) {
    Find("D3", "the header's ", what, " is not what the records before it say");
  };
  if (repeated.reserved != state_.reserved) differs("reservation of timestamps");
  if (repeated.low_water != state_.low_water) differs("low-water");
  if (repeated.redo_start != state_.redo_start) differs("redo start");
  if (repeated.known_dcs != state_.known_dcs) differs("list of data components");
  if (header.epoch > state_.epoch) {
    EndEpoch();
    ++counts_.starts;
    life_begins_ = true;
    life_from_ = state_.reserved;
    state_.epoch = header.epoch;
    state_.nonce = header.nonce;
  } else if (header.nonce != state_.nonce) {
    Find("X5", "a segment of epoch ", header.epoch.value, " with another nonce than the one before");
  }
}

void ChainAudit::OnBlock(const BlockHeader& header) {
  DEUT_CHECK(counts_.segments != 0);
  block_ = header;
  ++counts_.blocks;
  counts_.block_bytes += header.block_bytes;
  if (header.durable < durable_)
    Find("D2", "the durable LSN goes back from ", durable_.value, " to ", header.durable.value);
  durable_ = std::max(durable_, header.durable);
}

void ChainAudit::OnRecord(const LogRecord& record) {
  // Recovery passes on only what it has taken into the chain, in the order of ChainVisitor. These are facts of its
  // code, whatever the bytes of the log are.
  DEUT_CHECK(counts_.blocks != 0);
  DEUT_CHECK(block_.first_lsn <= record.lsn && record.end <= block_.end_lsn());
  DEUT_CHECK(static_cast<size_t>(record.type) < counts_.records.size());
  lsn_ = record.lsn;
  ChainCounts::Records& counted = counts_.records[static_cast<size_t>(record.type)];
  ++counted.count;
  counted.bytes += record.end.value - record.lsn.value;
  records_->Add(record.lsn);
  CheckLifeBegins(record);
  switch (record.type) {
    case RecordType::kCommit:
    case RecordType::kNamedCommit:
      CheckTransaction(record);
      CheckCommit(record);
      break;
    case RecordType::kChunk:
      CheckTransaction(record);
      chunks_[record.lsn.value] = Chunk{.timestamp = record.timestamp,
                                        .first_sequence = record.updates.empty() ? 0 : record.updates.begin()->sequence,
                                        .last_sequence = LastSequence(record.updates)};
      break;
    case RecordType::kLowWater:
      if (record.timestamp > state_.reserved) {
        Find("X1", "the record at LSN ", lsn_.value, " says low-water ", record.timestamp.value,
             ", only timestamps below ", state_.reserved.value, " are reserved");
      }
      break;
    case RecordType::kOutcomeHorizon:
      if (record.timestamp > state_.reserved) {
        Find("D3", "the record at LSN ", lsn_.value, " says that ids below timestamp ", record.timestamp.value,
             " may be gone, only timestamps below ", state_.reserved.value, " are reserved");
      }
      break;
    case RecordType::kTrimmed:
      if (record.trimmed > state_.redo_start.lsn) {
        Find("S2", "the record at LSN ", lsn_.value, " says that the log before LSN ", record.trimmed.value,
             " may be gone, redo starts at LSN ", state_.redo_start.lsn.value);
      }
      trimmed_ = std::max(trimmed_, record.trimmed);
      break;
    case RecordType::kReserveTimestamps:
      if (record.timestamp <= state_.reserved) {
        Find("D3", "the record at LSN ", lsn_.value, " reserves timestamps below ", record.timestamp.value,
             ", which were before: ", state_.reserved.value);
      }
      break;
    case RecordType::kRedoStart:
      CheckRedoStart(record);
      break;
    case RecordType::kEndOfEpoch:
    case RecordType::kEpochStart:
    case RecordType::kKnownDc:
      break;
  }
  state_.Apply(record);
}

void ChainAudit::CheckLifeBegins(const LogRecord& record) {
  if (record.type == RecordType::kEndOfEpoch) {
    if (before_ && (record.cut.segment != before_->segment || record.cut.offset != before_->offset)) {
      Find("D2", "the end of epoch at LSN ", lsn_.value, " names ", SegmentName(record.cut.segment), " at offset ",
           record.cut.offset, ", the log before it ends in ", SegmentName(before_->segment), " at offset ",
           before_->offset);
    }
    // In the oldest segment, only this record shows that a start begins here.
    if (counts_.segments == 1) {
      life_begins_ = true;
      life_from_ = state_.reserved;
    }
    return;
  }
  if (record.type != RecordType::kEpochStart) {
    if (std::exchange(life_begins_, false)) {
      Find("D3", "epoch ", block_.epoch.value, " begins with other records than its start");
    }
    return;
  }
  life_begins_ = false;
  if (record.tc != block_.tc || record.nonce != block_.nonce) {
    Find("X5", "the epoch start at LSN ", lsn_.value, " names another component or nonce than its block");
  }
}

void ChainAudit::CheckTransaction(const LogRecord& record) {
  counts_.updates += record.updates.size();
  const uint64_t timestamp = record.timestamp.value;
  if (record.epoch != block_.epoch) {
    Find("D3", "the transaction at LSN ", lsn_.value, " is of epoch ", record.epoch.value, " in a block of epoch ",
         block_.epoch.value);
  }
  if (record.timestamp >= state_.reserved) {
    Find("D3", "the transaction at LSN ", lsn_.value, " has timestamp ", timestamp, ", only those below ",
         state_.reserved.value, " are reserved");
  }
  if (record.timestamp < life_from_) {
    Find("D3", "the transaction at LSN ", lsn_.value, " has timestamp ", timestamp, ", those of its epoch begin at ",
         life_from_.value);
  }
  if (record.timestamp < state_.low_water) {
    Find("X1", "the transaction at LSN ", lsn_.value, " has timestamp ", timestamp,
         ", a record before it says low-water ", state_.low_water.value);
  }
}

void ChainAudit::CheckCommit(const LogRecord& record) {
  uint64_t& seen = timestamps_[record.timestamp.value / kWordBits];
  const uint64_t bit = uint64_t{1} << (record.timestamp.value % kWordBits);
  if ((seen & bit) != 0) {
    Find("D3", "the commit at LSN ", lsn_.value, " has timestamp ", record.timestamp.value, ", as one before it");
  }
  seen |= bit;

  Lsn first = record.lsn;
  uint32_t sequence = 0;
  bool rises = true;
  for (size_t i = 0; i < record.chunks.size(); ++i) {
    const Lsn lsn = record.chunks[i];
    first = std::min(first, lsn);
    if (lsn < first_lsn_) continue;  // the chunk was trimmed: then its commit is stable, which is checked below
    const auto found = chunks_.find(lsn.value);
    if (found == chunks_.end() || found->second.timestamp != record.timestamp) {
      Find("D4", "the commit at LSN ", lsn_.value, " names LSN ", lsn.value, ", where no chunk of its transaction is");
      continue;
    }
    if (found->second.last_sequence != 0) {
      rises &= found->second.first_sequence > sequence;
      sequence = found->second.last_sequence;
    }
    chunks_.erase(found);
  }
  if (!record.updates.empty()) rises &= record.updates.begin()->sequence > sequence;
  if (!rises) Find("D4", "the commit at LSN ", lsn_.value, ": the sequences of its chunks do not rise");

  commits_->Add(record.lsn);
  if (first != record.lsn) large_.push_back({.first = first, .commit = record.lsn});
  if (first < state_.redo_start.lsn) CheckUnstableCommitsAreKept(state_.redo_start);
}

void ChainAudit::CheckRedoStart(const LogRecord& record) {
  const RedoStart& start = record.redo_start;
  if (start.lsn < state_.redo_start.lsn) {
    Find("S2", "the redo start at LSN ", lsn_.value, " goes back from LSN ", state_.redo_start.lsn.value, " to ",
         start.lsn.value);
  }
  if (start.lsn > record.lsn || (start.lsn >= first_lsn_ && !records_->Contains(start.lsn))) {
    Find("S2", "the redo start at LSN ", lsn_.value, " names LSN ", start.lsn.value,
         ", where no record before it begins");
  }
  for (const DcPosition& position : start.stable) {
    if (position.stable.commit >= record.lsn) {
      Find("S2", "the redo start at LSN ", lsn_.value, " has data component ", position.dc.value, " at ",
           Show(position.stable), ", which lies beyond it");
    }
    if (std::ranges::find(state_.known_dcs, position.dc) == state_.known_dcs.end()) {
      Find("S2", "the redo start at LSN ", lsn_.value, " names data component ", position.dc.value,
           ", which is not of this log");
    }
    const auto last = std::ranges::find(state_.redo_start.stable, position.dc, &DcPosition::dc);
    if (last != state_.redo_start.stable.end() && position.stable < last->stable) {
      Find("S2", "the redo start at LSN ", lsn_.value, " has data component ", position.dc.value, " at ",
           Show(position.stable), ", the one before it had it at ", Show(last->stable));
    }
  }
  CheckUnstableCommitsAreKept(start);
}

void ChainAudit::CheckUnstableCommitsAreKept(const RedoStart& start) {
  for (const DcPosition& position : start.stable) {
    // A position inside a commit means that this commit is not completely stable.
    const uint64_t inside = position.stable.sequence == UINT32_MAX ? 1 : 0;
    if (position.stable.commit.value == UINT64_MAX) continue;
    const Lsn beyond(position.stable.commit.value + inside);
    std::optional<Lsn> lost = commits_->FirstIn(beyond, start.lsn);
    for (const LargeCommit& large : large_) {
      if (!lost && large.first < start.lsn && large.commit >= beyond) lost = large.commit;
    }
    if (lost) {
      Find("S2", "redo starts at LSN ", start.lsn.value, ", and the commit at LSN ", lost->value,
           " began before that, but data component ", position.dc.value, " has only ", Show(position.stable),
           " stable");
    }
  }
}

void ChainAudit::EndEpoch() {
  counts_.orphans += chunks_.size();
  chunks_.clear();
  timestamps_.clear();
}

// TRIMMED is durable before the first file is removed, and lies above the cut, so the remaining log always holds the last such record.
void ChainAudit::CheckBeginning() {
  if (counts_.segments == 0 || first_lsn_ <= trimmed_) return;
  // If redo starts before the first record, recovery itself refuses the log, with its own message.
  if (state_.redo_start.lsn < first_lsn_) return;
  DEUT_CHECK(first_segment_ > 0);
  const bool never = trimmed_ == kFirstLsn;
  const std::string last = Concat(directory_, "/", SegmentName(first_segment_ - 1));
  find_("S2", Concat(directory_, "/", SegmentName(first_segment_), " at offset 0: the log begins here, at LSN ",
                     first_lsn_.value, ", but ",
                     never ? "no record says that it was ever trimmed"
                           : Concat("its records say that it was trimmed only up to LSN ", trimmed_.value),
                     ": LSNs ", trimmed_.value, " to ", first_lsn_.value, " are missing, which were in ",
                     !never               ? Concat(last, " and perhaps in files before it")
                     : first_segment_ > 2 ? Concat(directory_, "/", SegmentName(1), " to ", last)
                                          : last,
                     "; redo starts at LSN ", state_.redo_start.lsn.value,
                     ", so no update is lost, but whether transactions before timestamp ", drawn_before_.value,
                     " were committed is answered as too old to know"));
}

void ChainAudit::OnEnd(const Cut& end, const Status& why) {
  DEUT_CHECK(!end_.has_value());
  EndEpoch();
  CheckBeginning();
  end_ = end;
  why_ = why;
}

void ChainAudit::OnBlockBehindEnd(const BlockHeader& header) {
  ++counts_.behind_blocks;
  counts_.behind_bytes += header.block_bytes;
}

}  // namespace deut::tc
