#include "tc/redo_log/recovery.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/testing/test_points.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/block_window.h"

namespace deut::tc {
namespace {

constexpr size_t kWindowBytes = size_t{1} << 20;

// One file as recovery sees it: the content of its header, if that is valid, and whether a new TC epoch begins with
// it.
struct SegmentFile {
  uint64_t number = 0;
  std::unique_ptr<File> file;
  uint64_t bytes = 0;  // of the file
  std::optional<BlockHeader> header;
  uint32_t header_checksum = 0;
  LogState state;              // the state that the header repeats
  uint64_t segment_bytes = 0;  // as the header says, at most `bytes`
  std::optional<Lsn> cut;      // set if the first record is END_OF_EPOCH
  std::optional<SipHashKey>
      key;  // key of the log that wrote the first block, also where that is left from an earlier use of the file
  bool whole = false;         // the first block is whole, whatever segment it names
  Status not_understood;      // why the first block cannot be told from one that another program has written
  uint64_t behind_bytes = 0;  // bytes in whole blocks of this segment behind the break
};

class Recovery {
 public:
  Recovery(Storage& storage, std::string directory, ChainVisitor* visitor, std::unique_ptr<IoQueue> queue)
      : storage_(storage),
        directory_(std::move(directory)),
        visitor_(visitor),
        window_(kWindowBytes, std::make_unique<FileReadAhead>(std::move(queue))) {}

  Result<RecoveredChain> Run() {
    DEUT_RETURN_IF_ERROR(OpenFiles());
    if (files_.empty()) {
      chain_.empty = true;
      return std::move(chain_);
    }
    DEUT_RETURN_IF_ERROR(CheckKeys());
    const Status found = FindEnd();
    DEUT_RETURN_IF_ERROR(CheckUnderstood(found));
    DEUT_RETURN_IF_ERROR(found);
    for (const auto& [block, proof] : unproven_) chain_.unproven.push_back(block);
    window_.Clear();  // drop reads ahead: the caller takes over the files that they use
    return std::move(chain_);
  }

 private:
  // Finds the chain, and decides whether the bytes behind it are a torn tail.
  Status FindEnd() {
    DEUT_RETURN_IF_ERROR(WalkChain());
    DEUT_CHECK(chain_.segments.size() == chain_files_);
    chain_.empty = chain_files_ == 0;
    chain_.end = Cut{.lsn = lsn_, .segment = chain_.empty ? 0 : LastFile().number, .offset = break_offset_};
    if (visitor_ != nullptr) visitor_->OnEnd(chain_.end, WhyItEnds());
    DEUT_RETURN_IF_ERROR(ScanPastBreak());
    return CheckState();
  }

  Status OpenFiles();
  Status ReadHeader(SegmentFile* file);
  // Checks that all files are of one log.
  Status CheckKeys() const;
  // Refuses a file that is not understood, and says whether an operator may move it away. `found`: how the search for the log's end ended.
  Status CheckUnderstood(const Status& found) const;
  Status WalkChain();
  // Takes the blocks of files_[index] behind its header. `end` is the offset at which the walk stopped.
  Status WalkSegment(size_t index, uint64_t* end);
  bool Continues(const SegmentFile& next) const;
  // Notes a block, or a segment's header, that is the next of the chain.
  void NoteUnproven(const BlockHeader& header);
  Status TakeBlock(const SegmentFile& file, const BlockWindow::Block& block, uint64_t offset);
  // Describes the break: the bytes in place of the next block, and why the next file does not continue the chain.
  Status WhyItEnds() const;
  Status ScanPastBreak();
  Status CheckState() const;
  // The last file of the chain: the one in which the chain breaks.
  const SegmentFile& LastFile() const { return files_[chain_files_ == 0 ? 0 : chain_files_ - 1]; }
  std::string PathOf(uint64_t number) const { return Concat(directory_, "/", SegmentName(number)); }

  Storage& storage_;
  const std::string directory_;
  ChainVisitor* const visitor_;
  std::vector<SegmentFile> files_;
  size_t chain_files_ = 0;  // number of files_ that belong to the chain

  RecoveredChain chain_;
  // The chain_.unproven so far. Each comes with its proof: a later block with a durable LSN at or above this one
  // makes it durable.
  std::deque<std::pair<UnprovenBlock, Lsn>> unproven_;
  Lsn lsn_ = kFirstLsn;  // the chain's end so far
  TcEpoch chain_epoch_;  // epoch of the chain's last segment
  uint64_t break_offset_ = 0;
  Status break_;        // why no block of the chain stands at break_offset_
  BlockWindow window_;  // destroyed before the files that it reads
};

Status Recovery::OpenFiles() {
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_.List(directory_));
  std::vector<uint64_t> numbers;
  for (const std::string& name : names) {
    uint64_t number = 0;
    if (ParseSegmentName(name, &number)) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && numbers[i] != numbers[i - 1] + 1) {
      return DEUT_ERROR(kCorruption, PathOf(numbers[i - 1] + 1),
                        " is missing, though later segments of the redo log are there");
    }
    SegmentFile file;
    file.number = numbers[i];
    DEUT_ASSIGN_OR_RETURN(file.file, storage_.Open(PathOf(numbers[i]), OpenOptions{.direct = true}));
    DEUT_ASSIGN_OR_RETURN(file.bytes, file.file->Size());
    DEUT_RETURN_IF_ERROR(ReadHeader(&file));
    files_.push_back(std::move(file));
  }
  return Status::Ok();
}

Status Recovery::ReadHeader(SegmentFile* file) {
  AlignedBuffer first(kSegmentHeaderBytes);
  DEUT_ASSIGN_OR_RETURN(const size_t read, file->file->Read(0, first.data(), first.size()));
  BlockHeader header;
  const Result<FirstBlock> understood = UnderstandFirstBlock(first.data(), read, file->number, &header);
  if (!understood.ok()) {
    Status refused(
        understood.status().code(),
        Concat(file->file->path(), " at offset 0: ", understood.status().message(), "; nothing was changed"));
    // The file stays where it is. Only the log's end will show whether it is a spare, which holds no block of the
    // log.
    if (refused == ErrorCode::kCorruption && !files_.empty()) {
      file->not_understood = std::move(refused);
      return Status::Ok();
    }
    return refused;
  }
  if (*understood != FirstBlock::kWhole) return Status::Ok();
  file->whole = true;
  const Status decoded = DecodeSegmentHeader(first.data(), header, &file->state, &file->segment_bytes);
  if (!decoded.ok()) return DEUT_ERROR(kCorruption, file->file->path(), " at offset 0: ", decoded.message());
  file->key = file->state.key;
  if (header.segment != file->number) return Status::Ok();  // a spare: it keeps its old header until it is reused
  DEUT_ASSIGN_OR_RETURN(file->header_checksum, VerifyBlock(first.data(), header));
  file->header = header;
  file->segment_bytes = std::min(file->segment_bytes, RoundDownToIo(file->bytes));

  const Result<BlockWindow::Block> block =
      window_.Read(*file->file, file->number, file->segment_bytes, kSegmentHeaderBytes, &*file->key);
  if (!block.ok()) return block.status() == ErrorCode::kCorruption ? Status::Ok() : block.status();
  LogRecord record;
  size_t needed;
  if (block->header.epoch == file->header->epoch && block->header.nonce == file->header->nonce &&
      DecodeRecord(block->header.first_lsn, block->payload(), &record, &needed).ok() &&
      needed <= block->payload().size() && record.type == RecordType::kEndOfEpoch) {
    file->cut = record.cut.lsn;
  }
  return Status::Ok();
}

Status Recovery::CheckKeys() const {
  const SegmentFile* first = nullptr;
  for (const SegmentFile& file : files_) {
    if (!file.key) continue;
    if (first == nullptr) first = &file;
    if (file.key == first->key) continue;
    return DEUT_ERROR(kCorruption, PathOf(file.number), " at offset 0: a segment of another redo log than ",
                      PathOf(first->number), " (of transaction component ", file.state.tc.value, " and of ",
                      first->state.tc.value, "); nothing was changed");
  }
  return Status::Ok();
}

Status Recovery::CheckUnderstood(const Status& found) const {
  const auto strange = std::ranges::find_if(files_, [](const SegmentFile& file) { return !file.not_understood.ok(); });
  if (strange == files_.end()) return Status::Ok();
  const Status& why = strange->not_understood;
  if (!found.ok()) return Status(why.code(), Concat(why.message(), ". Besides, ", found.message()));
  if (chain_.empty) return why;
  // The chain ends before this file, as it has no header. If it or a later file belonged to the log, blocks of the
  // log would be in them.
  const auto used = std::find_if(strange, files_.end(), [](const SegmentFile& file) { return file.behind_bytes != 0; });
  if (used != files_.end()) {
    return Status(why.code(), Concat(why.message(), ". It may be a segment in use whose beginning is damaged: ",
                                     used->behind_bytes, " bytes in blocks of the log are in ", PathOf(used->number)));
  }
  const uint64_t last = files_.back().number;
  return Status(
      why.code(),
      Concat(why.message(), ". The log ends before this file, at LSN ", chain_.end.lsn.value, " in ",
             PathOf(chain_.end.segment), ", and no block of the log is in it",
             strange->number == last ? "" : " or in a later one",
             ": it is a spare whose beginning is damaged, or no file of this store. To start the store, move it",
             strange->number == last ? "" : Concat(" and the later segments, up to ", PathOf(last), ","),
             " out of the folder; nothing is lost with ", strange->number == last ? "it" : "them"));
}

// True if the segment's header is the next element of the chain. The first segment of an epoch counts only with its
// cut. Without a cut, a write that arrives late in the segment before it would count again, even if later epochs log
// their cuts.
bool Recovery::Continues(const SegmentFile& next) const {
  return next.header && next.header->first_lsn == lsn_ && next.header->predecessor == chain_.checksum &&
         next.header->epoch >= chain_epoch_ && next.header->tc == chain_.state.tc && next.key == chain_.state.key &&
         (chain_files_ == 0 || next.header->epoch == chain_epoch_ || next.cut);
}

Status Recovery::WalkChain() {
  const SegmentFile& oldest = files_.front();
  if (!oldest.header) {
    // A new log whose first header was never durable, or damage: the scan past the break decides.
    break_ = DEUT_ERROR(kCorruption, oldest.file->path(),
                        " at offset 0: the header of the oldest segment of the redo log is damaged");
    return oldest.number == 1 ? Status::Ok() : break_;
  }
  chain_.first_lsn = lsn_ = oldest.header->first_lsn;
  chain_.state = oldest.state;
  chain_.checksum = oldest.header->predecessor;
  while (chain_files_ < files_.size() && Continues(files_[chain_files_])) {
    if (!chain_.segments.empty()) chain_.segments.back()->End(lsn_);
    DEUT_RETURN_IF_ERROR(WalkSegment(chain_files_, &break_offset_));
    ++chain_files_;
  }
  return Status::Ok();
}

Status Recovery::WalkSegment(size_t index, uint64_t* end) {
  SegmentFile& file = files_[index];
  NoteUnproven(*file.header);
  if (visitor_ != nullptr) visitor_->OnSegment(*file.header, file.state);
  chain_.checksum = file.header_checksum;
  chain_epoch_ = file.header->epoch;
  if (chain_.starts.empty() || chain_.starts.back().epoch != chain_epoch_)
    chain_.starts.push_back({.epoch = chain_epoch_, .nonce = file.header->nonce, .begin = lsn_});
  chain_.state.epoch = std::max(chain_.state.epoch, chain_epoch_);
  auto segment = std::make_shared<Segment>(file.number, std::move(file.file), file.segment_bytes,
                                           /*created_by_this_process=*/false);
  segment->Begin(lsn_);
  chain_.segments.push_back(segment);
  std::optional<Lsn> limit;
  if (index + 1 < files_.size() && files_[index + 1].header && files_[index + 1].header->epoch > chain_epoch_) {
    limit = files_[index + 1].cut;
  }
  break_ = Status::Ok();
  for (*end = kSegmentHeaderBytes; limit != lsn_;) {
    const Result<BlockWindow::Block> block =
        window_.Read(segment->file(), file.number, file.segment_bytes, *end, &chain_.state.key);
    if (!block.ok() && block.status() != ErrorCode::kCorruption) return block.status();
    break_ = block.status();
    if (!block.ok()) break;
    if (block->header.first_lsn != lsn_ ||
        (block->header.predecessor != chain_.checksum && DEUT_STEP("log.predecessor")) ||
        block->header.epoch != chain_epoch_ || block->header.nonce != file.header->nonce) {
      break_ = DEUT_ERROR(kCorruption, segment->file().path(), " at offset ", *end, ": a whole block of LSN ",
                          block->header.first_lsn.value, ", epoch ", block->header.epoch.value,
                          ", does not continue the block before it");
      break;
    }
    DEUT_RETURN_IF_ERROR(TakeBlock(file, *block, *end));
    segment->AddBlock(block->header.first_lsn, *end);
    NoteUnproven(block->header);
    *end += block->header.block_bytes;
  }
  // A chain that breaks before the cut is detected by the scan: the next segment's header was written when everything
  // up to the cut was durable.
  if (limit && (lsn_ > *limit || (lsn_ == *limit && !Continues(files_[index + 1])))) {
    return DEUT_ERROR(kCorruption, files_[index + 1].file->path(), " at offset 0: an end of epoch at LSN ",
                      limit->value, " does not fit the log before it, which ends at LSN ", lsn_.value);
  }
  return Status::Ok();
}

void Recovery::NoteUnproven(const BlockHeader& header) {
  // Durability advances in the order of the log, so the newest block names the highest durable LSN.
  while (!unproven_.empty() && unproven_.front().second <= header.durable) unproven_.pop_front();
  // A segment's header takes no LSN. It was durable before the record behind it was.
  const bool first = header.kind == BlockKind::kSegmentHeader;
  const Lsn proof = first ? Lsn(header.first_lsn.value + 1) : header.end_lsn();
  unproven_.emplace_back(UnprovenBlock{.segment = header.segment, .offset = header.offset, .bytes = header.block_bytes},
                         proof);
}

Status Recovery::TakeBlock(const SegmentFile& file, const BlockWindow::Block& block, uint64_t offset) {
  if (visitor_ != nullptr) visitor_->OnBlock(block.header);
  std::string_view rest = block.payload();
  const auto damaged = [&](std::string_view why) {
    return DEUT_ERROR(kCorruption, PathOf(file.number), " at offset ", offset, ": the block is whole, but: ", why);
  };
  while (!rest.empty()) {
    LogRecord record;
    size_t needed = 0;
    const Status decoded = DecodeRecord(lsn_, rest, &record, &needed);
    if (!decoded.ok()) return damaged(decoded.message());
    if (needed > rest.size()) return damaged(Concat("the record at LSN ", lsn_.value, " is cut off"));
    if (record.type == RecordType::kEpochStart && record.epoch != block.header.epoch)
      return damaged("it starts another epoch");
    if (record.type == RecordType::kEndOfEpoch &&
        (offset != kSegmentHeaderBytes || record.lsn != block.header.first_lsn || record.cut.lsn != record.lsn)) {
      return damaged("an end of epoch out of place");
    }
    if (visitor_ != nullptr) visitor_->OnRecord(record);
    if (record.type == RecordType::kCommit || record.type == RecordType::kLowWater) chain_.last_shipped = record.lsn;
    chain_.state.Apply(record);
    rest.remove_prefix(needed);
    lsn_ = record.end;
  }
  chain_.checksum = block.checksum;
  return Status::Ok();
}

Status Recovery::WhyItEnds() const {
  Status why = break_;
  if (why.ok()) {  // the chain ends at a logged cut
    why = DEUT_ERROR(kCorruption, PathOf(chain_.end.segment), " at offset ", break_offset_,
                     ": the next segment begins with an end of epoch here");
  }
  if (chain_.empty || chain_files_ == files_.size() || !files_[chain_files_].header) return why;
  const SegmentFile& next = files_[chain_files_];
  return DEUT_ERROR(kCorruption, why.message(), "; ", next.file->path(), ", of epoch ", next.header->epoch.value,
                    ", begins at LSN ", next.header->first_lsn.value, " and does not continue it");
}

Status Recovery::ScanPastBreak() {
  const size_t first = chain_.empty ? 0 : chain_files_ - 1;
  // Without a header no key is known. Then every block that is valid by its checksum counts as proof of damage. A log
  // that never got its first header has taken no commit, so it holds no client's bytes.
  const SipHashKey* const key = chain_.empty ? nullptr : &chain_.state.key;
  const std::string place = Concat(PathOf(LastFile().number), " at offset ", break_offset_);
  for (size_t i = first; i < files_.size(); ++i) {
    const bool in_chain = i < chain_files_;
    File& file = in_chain ? chain_.segments.back()->file() : *files_[i].file;
    const uint64_t bytes = RoundDownToIo(files_[i].bytes);
    uint64_t offset = in_chain ? break_offset_ : 0;
    // The file holds only zeros behind this offset. A tail that is no multiple of 4 KiB is not examined, and may hold
    // anything.
    uint64_t written = files_[i].bytes == bytes ? 0 : files_[i].bytes;
    while (offset < bytes) {
      const Result<BlockWindow::Block> block = window_.Read(file, files_[i].number, bytes, offset, key);
      if (!block.ok()) {
        if (block.status() != ErrorCode::kCorruption) return block.status();
        bool zero = false;
        if (!files_[i].whole) {
          DEUT_ASSIGN_OR_RETURN(zero, window_.IsZero(file, bytes, offset));
        }
        offset += kBlockAlignment;
        if (!zero) written = std::max(written, offset);
        continue;
      }
      written = std::max(written, offset + block->header.block_bytes);
      files_[i].behind_bytes += block->header.block_bytes;
      if (block->header.epoch >= chain_epoch_) {
        if (visitor_ != nullptr) visitor_->OnBlockBehindEnd(block->header);
        if (block->header.durable > lsn_ && DEUT_STEP("D2.scan_past_break")) {
          return DEUT_ERROR(kCorruption, place, ": the redo log is damaged at LSN ", lsn_.value, ": the block in ",
                            PathOf(files_[i].number), " at offset ", offset,
                            " was written when the log was durable up to LSN ", block->header.durable.value);
        }
        if (!chain_.empty && block->header.tc != chain_.state.tc) {
          return DEUT_ERROR(kCorruption, PathOf(files_[i].number), " at offset ", offset,
                            ": a block of another transaction component, ", block->header.tc.value, " in place of ",
                            chain_.state.tc.value);
        }
        chain_.dropped_bytes += block->header.block_bytes;
        chain_.state.epoch = std::max(chain_.state.epoch, block->header.epoch);
      }
      offset += block->header.block_bytes;
    }
    if (in_chain) continue;
    chain_.stale.push_back(files_[i].number);
    // A torn write may leave such a file. It may also be a damaged segment whose blocks no later block calls durable,
    // so an operator may want it.
    if (!files_[i].whole && written != 0) chain_.damaged.push_back({.number = files_[i].number, .bytes = written});
  }
  chain_.next_number = chain_.empty ? 1 : LastFile().number + 1;
  return Status::Ok();
}

Status Recovery::CheckState() const {
  if (chain_.empty) return Status::Ok();
  const Lsn redo_start = chain_.state.redo_start.lsn;
  if (redo_start < chain_.first_lsn || redo_start > chain_.end.lsn) {
    return DEUT_ERROR(kCorruption, PathOf(files_.front().number), " at offset 0: the redo log holds LSNs ",
                      chain_.first_lsn.value, " to ", chain_.end.lsn.value, ", but redo starts at LSN ",
                      redo_start.value, ": segments are missing; nothing was changed");
  }
  if (chain_.state.known_dcs.size() > kMaxKnownDcs) {
    return DEUT_ERROR(kCorruption, directory_, ": the redo log names ", chain_.state.known_dcs.size(),
                      " data components");
  }
  return Status::Ok();
}

}  // namespace

Result<RecoveredChain> RecoverChain(Storage& storage, const std::string& directory, ChainVisitor* visitor) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue, storage.NewQueue(FileReadAhead::kDepth));
  return Recovery(storage, directory, visitor, std::move(queue)).Run();
}

Status RewriteUnprovenBlocks(Storage& storage, const std::string& directory, const std::vector<UnprovenBlock>& blocks) {
  if (DEUT_OMITTED("D2.write_again")) return Status::Ok();
  AlignedBuffer buffer;
  std::unique_ptr<File> file;
  uint64_t opened = 0;
  for (const UnprovenBlock& block : blocks) {
    if (file == nullptr || opened != block.segment) {
      const std::string path = Concat(directory, "/", SegmentName(block.segment));
      const OpenOptions options{.writable = true, .direct = true, .sync_writes = true};
      DEUT_ASSIGN_OR_RETURN(file, storage.Open(path, options));
      opened = block.segment;
    }
    EnsureSize(block.bytes, &buffer);
    DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(block.offset, buffer.data(), block.bytes));
    if (read != block.bytes) {
      return DEUT_ERROR(kIoError, file->path(), " at offset ", block.offset, ": only ", read, " of ", block.bytes,
                        " bytes are there now");
    }
    // A read may now return wrong bytes for a block that was right before. Written again, they would replace the
    // right ones.
    BlockHeader header;
    Status intact = ReadBlockHeader(buffer.data(), block.segment, block.offset, block.bytes, &header);
    if (intact.ok() && header.block_bytes != block.bytes) intact = DEUT_ERROR(kCorruption, "its length has changed");
    if (intact.ok()) intact = VerifyBlock(buffer.data(), header).status();
    if (!intact.ok()) {
      return DEUT_ERROR(kCorruption, file->path(), " at offset ", block.offset,
                        ": the block was right when it was read first, and no longer is: ", intact.message());
    }
    DEUT_RETURN_IF_ERROR(file->Write(block.offset, buffer.data(), block.bytes));
  }
  return Status::Ok();
}

}  // namespace deut::tc
