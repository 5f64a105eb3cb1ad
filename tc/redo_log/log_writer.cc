#include "tc/redo_log/log_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// A block of at least this size may use one of the places in flight beyond `max_small_in_flight`.
constexpr size_t kLargeBlockBytes = size_t{64} << 10;
// Released space is zeroed in steps of at least the ring's size divided by this, unless an appender waits for it.
constexpr size_t kReleaseSteps = 64;
// After a failure the thread polls its remaining transfers at this period.
constexpr Duration kFailedPause = milliseconds(10);

}  // namespace

LogWriter::LogWriter(const LogWriterOptions& options, const Parts& parts, LogState state, LogEnd end)
    : options_(options),
      parts_(parts),
      state_(std::move(state)),
      predecessor_(end.checksum),
      scanned_(end.lsn),
      watermarks_(state_.redo_start.lsn, end.lsn) {}

LogWriter::~LogWriter() { Stop(); }

void LogWriter::Start() {
  thread_ = parts_.runtime.StartThread("log_writer", [this] { Loop(); });
}

void LogWriter::Stop() {
  if (thread_ == nullptr) return;
  stopping_.store(true, std::memory_order_seq_cst);
  parts_.role.Notify();
  DEUT_POINT("redo_log.writer.told_to_stop");
  thread_.reset();
}

void LogWriter::Loop() {
  for (;;) {
    bool worked = HandleCompletions();
    const bool failed = parts_.failure.failed();
    failure_seen_ = failed;
    parts_.durability_queue.CollectAndAnswer(durable(), parts_.failure.status());
    ReleaseRing();
    worked |= failed ? DiscardRecordsAfterFailure() : SubmitBlocks();
    if (worked) {
      if (!in_flight_.empty()) parts_.queue.Reap(&completed_, MonotonicTime());
      continue;
    }
    if (stopping() && in_flight_.empty() && (failed || NoSpace() || consumed() == parts_.ring.tail())) break;
    Sleep();
  }
  // Nothing is in flight. So all that was taken from the ring is durable, unless a write has failed.
  DEUT_CHECK(durable() == consumed() || parts_.failure.failed());
  parts_.durability_queue.Close(durable(), EndStatus());
}

Status LogWriter::EndStatus() const {
  const Status failure = parts_.failure.status();
  return failure.ok() ? DEUT_ERROR(kCancelled, "the redo log was stopped") : failure;
}

bool LogWriter::NotifyWhenDurable(Lsn lsn, DurabilityCallback* waiter, Urgency urgency) {
  if (durable() > lsn) return true;
  if (parts_.durability_queue.Register(lsn, waiter)) {
    DEUT_POINT("redo_log.writer.registered");
    // From here on the waiter may be gone. A record that was taken already is not urgent: its write is in flight.
    if (urgency == Urgency::kUrgent && consumed() <= lsn) {
      for (uint64_t seen = urgent_below_.load(std::memory_order_seq_cst);
           seen <= lsn.value && !urgent_below_.compare_exchange_weak(seen, lsn.value + 1, std::memory_order_seq_cst);) {
      }
      parts_.role.Notify();
    } else if ((durable() > lsn || parts_.failure.failed()) && DEUT_STEP("log.look_after_register")) {
      // The record became durable, or the log failed, meanwhile. The thread that answered then may not have seen the
      // waiter. Otherwise it will see it: it stores the durable LSN, or the failure, before it looks for waiters.
      parts_.role.Notify();
    }
  } else {
    waiter->OnDurable(durable() > lsn ? Status::Ok() : EndStatus());
  }
  return false;
}

void LogWriter::Sleep() {
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  if (in_flight_.empty()) {
    SleepWithNothingInFlight();
    return;
  }
  const auto work_waits = [this] { return WorkWaits(); };
  const MonotonicTime now = parts_.runtime.Now();
  const bool told = in_flight_.front()->slow;
  const Deadline stuck = in_flight_.front()->submitted +
                         (told ? options_.device_timeout : std::min(options_.slow_after, options_.device_timeout));
  if (failure_seen_) {
    parts_.role.SleepInReap(work_waits, &completed_, now + kFailedPause);
  } else if (!MaySubmit()) {
    // Only a completion can change that, so appenders need not wake the thread.
    parts_.queue.Reap(&completed_, stuck);
  } else {
    if (due_ == kNoDeadline) due_ = now + options_.linger;
    parts_.role.SleepInReap(work_waits, &completed_, stalled_ ? stuck : std::min(stuck, due_));
  }
  if (completed_.empty()) CheckDevice();
}

// REQUIRES: nothing is in flight.
void LogWriter::SleepWithNothingInFlight() {
  const bool pending = scanned_ > consumed();
  if (pending) DEUT_POINT("redo_log.writer.before_pending_rest");
  // A record that was not due when the loop looked may be due now. A thread that stops the log, or has an urgent record,
  // found the log thread awake since then and woke nobody. The looks below see only records behind `scanned_`. The
  // flags are read once: a request that comes later is seen by the look below. A second read here would send the
  // thread to a sleep from which nobody wakes it.
  const bool asked = stopping() || UrgentRecordWaits();
  if (pending) DEUT_POINT("redo_log.writer.after_look");
  const bool may_write = pending && !stalled_ && !failure_seen_;
  if (may_write && asked) return;
  const bool must_be_woken =
      failure_seen_ || stalled_ || asked || (DEUT_OMITTED("log.look_once") && (stopping() || UrgentRecordWaits()));
  if (must_be_woken || (!pending && !linger_policy_.may_linger())) {
    linger_policy_.BeginSleep();
    RecordWord word;
    parts_.role.SleepIdle([&] { return SomethingElseWaits() || (!stalled_ && parts_.ring.Peek(scanned_, &word)); });
    linger_policy_.EndSleep();
    return;
  }
  if (due_ == kNoDeadline) due_ = parts_.runtime.Now() + options_.linger;
  const Lsn full_at(consumed().value + kLargeBlockBytes);
  // This look reads no state of the role: a committer may lead as soon as the role says that the thread sleeps.
  parts_.role.SleepLingering(
      [&] { return SomethingElseWaits() || stopping() || UrgentRecordWaits() || parts_.ring.tail() >= full_at; },
      full_at, due_, options_.linger,
      [&](Duration waited) {
        if (waited < options_.device_timeout) {
          if (waited >= 2 * options_.slow_after) return;  // the warning was logged
          LogWarning("disk: a write of the redo log that a committer has begun has not come back for ",
                     duration_cast<milliseconds>(waited).count(), " ms");
          return;
        }
        Fail(DEUT_ERROR(kIoError, "redo log: a write that a committer has begun has not come back within ",
                        duration_cast<milliseconds>(options_.device_timeout).count(), " ms"));
      },
      std::min(options_.slow_after, options_.device_timeout));
  const bool timed_out = parts_.runtime.Now() >= due_;
  linger_policy_.EndLinger(parts_.role.contended_leads(), timed_out && consumed() == parts_.ring.tail());
}

// While few places in flight are taken, any record may be submitted. Beyond that, only a sequence that Scan found
// large enough.
bool LogWriter::MaySubmit() const {
  return in_flight_.size() < options_.max_small_in_flight ||
         (in_flight_.size() < options_.max_in_flight && scanned_.value - consumed().value >= kLargeBlockBytes);
}

bool LogWriter::Due() {
  if (UrgentRecordWaits() || scanned_.value - consumed().value >= kLargeBlockBytes || stopping() ||
      parts_.ring.has_waiters())
    return true;
  const MonotonicTime now = parts_.runtime.Now();
  if (due_ == kNoDeadline) due_ = now + options_.linger;
  return now >= due_;
}

// Work other than records. It reads no state of the role.
bool LogWriter::SomethingElseWaits() const {
  if (parts_.durability_queue.HasNew()) return true;
  if (parts_.ring.has_waiters() && ReleaseTarget() > parts_.ring.released()) return true;
  const bool failed = parts_.failure.failed();
  if (failed != failure_seen_) return true;
  if (stopping() && (failed || NoSpace() || consumed() == parts_.ring.tail())) return true;
  return !failed && stalled_ && parts_.segments.spare_count() != 0;
}

bool LogWriter::WorkWaits() const {
  if (parts_.durability_queue.HasNew()) return true;
  if (parts_.ring.has_waiters() && ReleaseTarget() > parts_.ring.released()) return true;
  const bool failed = parts_.failure.failed();
  if (failed != failure_seen_) return true;
  RecordWord word;
  if (failed) return parts_.ring.Peek(scanned_, &word);
  if (stalled_) return parts_.segments.spare_count() != 0;
  return MaySubmit() && (UrgentRecordWaits() || stopping() || parts_.ring.has_waiters()) &&
         (scanned_ > consumed() || parts_.ring.Peek(scanned_, &word));
}

void LogWriter::CheckDevice() {
  Block& oldest = *in_flight_.front();
  const MonotonicTime now = parts_.runtime.Now();
  if (oldest.completed) return;
  if (now < oldest.submitted + options_.device_timeout) {
    if (oldest.slow || now < oldest.submitted + options_.slow_after) return;
    oldest.slow = true;
    LogWarning("disk: ", Describe(oldest), " has not come back for ",
               duration_cast<milliseconds>(now - oldest.submitted).count(), " ms, with ", in_flight_.size() - 1,
               " more behind it");
    return;
  }
  Fail(DEUT_ERROR(kIoError, "redo log: no completion of the write to ", oldest.segment->file().path(), " at offset ",
                  oldest.header.offset, " within ", duration_cast<milliseconds>(options_.device_timeout).count(),
                  " ms"));
}

std::string LogWriter::Describe(const Block& block) {
  return Concat("the write of ", block.segment->file().path(), ", ", block.request.bytes, " bytes at offset ",
                block.request.offset);
}

void LogWriter::Fail(const Status& status) { parts_.failure.Report(status); }

bool LogWriter::HandleCompletions() {
  if (completed_.empty() && (in_flight_.empty() || !in_flight_.front()->completed)) return false;
  for (IoRequest* const request : completed_) {
    Block* const block = static_cast<Block*>(request->context);
    DEUT_DCHECK(!block->completed);  // or an earlier completion was taken for this write
    block->completed = true;
    if (DEUT_OMITTED("D2.in_order")) watermarks_.AdvanceDurable(std::max(durable(), block->header.end_lsn()));
    const bool written = request->status.ok() && request->transferred == request->bytes;
    if (!written && DEUT_STEP("log.failed_write")) {
      const std::string error =
          request->status.ok() ? Concat("only ", request->transferred, " of ", request->bytes, " bytes were written")
                               : request->status.ToString();
      Fail(DEUT_ERROR(kIoError, "redo log: write to ", block->segment->file().path(), " at offset ", request->offset,
                      " failed: ", error));
    }
  }
  completed_.clear();
  // Only blocks at the front count: a later block that is complete says nothing about an earlier one (D2.in_order).
  while (!in_flight_.empty() && in_flight_.front()->completed) {
    std::unique_ptr<Block> block = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (block->slow) {
      LogWarning("disk: ", Describe(*block), " has come back after ",
                 duration_cast<milliseconds>(parts_.runtime.Now() - block->submitted).count(), " ms");
    }
    if (!parts_.failure.failed()) {
      if (block->header.kind == BlockKind::kRecords)
        block->segment->AddBlock(block->header.first_lsn, block->header.offset);
      DEUT_POINT("redo_log.writer.before_durable");
      watermarks_.AdvanceDurable(block->header.end_lsn());
    }
    block->segment = nullptr;
    free_blocks_.push_back(std::move(block));
  }
  return true;
}

void LogWriter::Scan() {
  RecordWord word;
  const Lsn from = consumed();
  while (scanned_.value - from.value < options_.block_bytes && parts_.ring.Peek(scanned_, &word)) {
    if (scanned_ != from && scanned_.value - from.value + word.bytes > options_.block_bytes) break;
    scanned_ = Lsn(scanned_.value + word.bytes);
  }
}

Lsn LogWriter::RunThatFits() const {
  if (segment_ == nullptr) return consumed();
  const uint64_t room = segment_->bytes() - offset_;
  if (BlockBytesFor(scanned_.value - consumed().value) <= room) return scanned_;
  Lsn end = consumed();
  RecordWord word;
  while (end < scanned_ && parts_.ring.Peek(end, &word) &&
         BlockBytesFor(end.value + word.bytes - consumed().value) <= room) {
    end = Lsn(end.value + word.bytes);
  }
  return end;
}

bool LogWriter::SubmitBlocks() {
  bool worked = false;
  while (!parts_.failure.failed()) {
    Scan();
    if (scanned_ == consumed() || !MaySubmit() || !Due()) break;
    const Lsn end = RunThatFits();
    if (end != consumed()) {
      Submit(FormRecords(end));
    } else if (!OpenNextSegment()) {
      break;
    }
    worked = true;
  }
  if (scanned_ == consumed()) due_ = kNoDeadline;
  return worked;
}

bool LogWriter::Lead(Lsn lsn) {
  if (parts_.failure.failed() || !parts_.role.TryLead()) return false;
  bool took_all = false;
  if (!parts_.failure.failed()) LeadOneBlock(lsn, &took_all);
  parts_.role.EndLead(took_all, /*hand_over=*/parts_.failure.failed());
  return durable() > lsn;
}

// The log thread sleeps with nothing in flight, so the block goes behind the last durable one. A leader opens no new
// segment: there may be none, and only the log thread waits for one.
void LogWriter::LeadOneBlock(Lsn lsn, bool* took_all) {
  DEUT_DCHECK(in_flight_.empty());
  DEUT_DCHECK(durable() == consumed());
  // Another thread may have written the record by now. A block is never empty.
  if (consumed() > lsn) return;
  Scan();
  const Lsn end = RunThatFits();
  if (end <= lsn) return;  // perhaps an earlier record is still being copied
  RecordWord word;
  *took_all = end == scanned_ && !parts_.ring.Peek(end, &word);
  Block* const block = FormRecords(end);
  Prepare(block);
  led_blocks_.fetch_add(1, std::memory_order_relaxed);
  DEUT_POINT("redo_log.writer.before_led_write");
  IoRequest& request = block->request;
  request.status = request.file->Write(request.offset, request.data, request.bytes);
  if (request.status.ok()) request.transferred = request.bytes;
  block->slow = parts_.runtime.Now() >= block->submitted + options_.slow_after;
  completed_.push_back(&request);
  HandleCompletions();
  if (parts_.failure.failed()) return;  // the log thread answers the waiters
  parts_.durability_queue.CollectAndAnswer(durable(), Status::Ok());
  ReleaseRing();
}

bool LogWriter::OpenNextSegment() {
  std::shared_ptr<Segment> next = parts_.segments.TakeSpare();
  stalled_ = next == nullptr;
  if (stalled_) return false;
  Block* const block = NewBlock();
  EnsureSize(kSegmentHeaderBytes, &block->buffer);
  block->segment = next;
  block->header = BlockHeader{.kind = BlockKind::kSegmentHeader,
                              .block_bytes = kSegmentHeaderBytes,
                              .predecessor = predecessor_,
                              .first_lsn = consumed(),
                              .durable = durable(),
                              .segment = next->number(),
                              .offset = 0,
                              .tc = state_.tc,
                              .epoch = state_.epoch,
                              .nonce = state_.nonce};
  // Recovery refuses a log whose redo start lies beyond it.
  DEUT_CHECK(state_.redo_start.lsn <= consumed());
  LogState repeated;
  repeated.key = state_.key;
  if (DEUT_STEP("D3.repeat_in_header")) repeated = state_;
  predecessor_ = EncodeSegmentHeader(block->header, repeated, next->bytes(), block->buffer.data());
  parts_.segments.Open(next, consumed());
  segment_ = std::move(next);
  offset_ = kSegmentHeaderBytes;
  segment_room_.store(segment_->bytes() - offset_, std::memory_order_release);
  Submit(block);
  return true;
}

LogWriter::Block* LogWriter::FormRecords(Lsn end) {
  const Lsn begin = consumed();
  DEUT_DCHECK(begin < end && end <= scanned_);
  const size_t payload_bytes = end.value - begin.value;
  Block* const block = NewBlock();
  block->header = BlockHeader{.kind = BlockKind::kRecords,
                              .block_bytes = static_cast<uint32_t>(BlockBytesFor(payload_bytes)),
                              .payload_bytes = static_cast<uint32_t>(payload_bytes),
                              .predecessor = predecessor_,
                              .first_lsn = begin,
                              .durable = durable(),
                              .segment = segment_->number(),
                              .offset = offset_,
                              .tc = state_.tc,
                              .epoch = state_.epoch,
                              .nonce = state_.nonce};
  block->segment = segment_;
  EnsureSize(block->header.block_bytes, &block->buffer);
  char* const payload = block->buffer.data() + kBlockHeaderBytes;
  parts_.ring.CopyOut(begin, payload_bytes, payload);
  ApplyToState(begin, payload, payload_bytes);
  predecessor_ = SealBlock(block->header, state_.key, block->buffer.data());
  offset_ += block->header.block_bytes;
  segment_room_.store(segment_->bytes() - offset_, std::memory_order_release);
  watermarks_.AdvanceConsumed(end, [this] { return parts_.ring.tail(); });
  return block;
}

void LogWriter::ApplyToState(Lsn lsn, const char* payload, size_t bytes) {
  uint64_t records = 0;
  size_t at = 0;
  for (; at < bytes; ++records) {
    uint64_t encoded;
    std::memcpy(&encoded, payload + at, sizeof(encoded));
    RecordWord word;
    DEUT_CHECK(DecodeRecordWord(Lsn(lsn.value + at), encoded, &word));
    if (word.type != RecordType::kCommit && word.type != RecordType::kNamedCommit && word.type != RecordType::kChunk) {
      LogRecord record;
      size_t needed;
      DEUT_CHECK(DecodeRecord(Lsn(lsn.value + at), std::string_view(payload + at, bytes - at), &record, &needed).ok());
      state_.Apply(record);
    }
    at += word.bytes;
  }
  DEUT_DCHECK(at == bytes);  // a block holds whole records
  records_.fetch_add(records, std::memory_order_relaxed);
}

LogWriter::Block* LogWriter::NewBlock() {
  if (free_blocks_.empty()) free_blocks_.push_back(std::make_unique<Block>());
  in_flight_.push_back(std::move(free_blocks_.back()));
  free_blocks_.pop_back();
  DEUT_DCHECK(in_flight_.size() <= options_.max_in_flight);  // the queue takes no more
  return in_flight_.back().get();
}

void LogWriter::Prepare(Block* block) {
  // ReadBlockHeader and recovery refuse a block without these properties.
  DEUT_DCHECK(block->header.durable <= block->header.first_lsn);
  DEUT_DCHECK(block->header.offset + block->header.block_bytes <= block->segment->bytes());
  block->completed = block->slow = false;
  block->submitted = parts_.runtime.Now();
  block->request = IoRequest{.kind = IoRequest::Kind::kWrite,
                             .file = &block->segment->file(),
                             .offset = block->header.offset,
                             .data = block->buffer.data(),
                             .bytes = block->header.block_bytes,
                             .context = block,
                             .status = Status::Ok()};
  blocks_.fetch_add(1, std::memory_order_relaxed);
  block_bytes_.fetch_add(block->header.block_bytes, std::memory_order_relaxed);
  if (DEUT_OMITTED("log.wait_completion")) watermarks_.AdvanceDurable(block->header.end_lsn());
}

void LogWriter::Submit(Block* block) {
  Prepare(block);
  DEUT_POINT("redo_log.writer.before_submit");
  const Status submitted = parts_.queue.Submit(&block->request);
  if (!submitted.ok()) {
    block->completed = true;  // the queue will not complete it
    Fail(DEUT_ERROR(kIoError, "redo log: cannot submit a write to ", block->segment->file().path(), ": ",
                    submitted.ToString()));
  }
}

bool LogWriter::DiscardRecordsAfterFailure() {
  const Lsn before = scanned_;
  RecordWord word;
  while (parts_.ring.Peek(scanned_, &word)) scanned_ = Lsn(scanned_.value + word.bytes);
  watermarks_.AdvanceConsumed(scanned_, [this] { return parts_.ring.tail(); });
  return scanned_ != before;
}

Lsn LogWriter::ReleaseTarget() const {
  // A quarter of the ring is kept free and zeroed ahead of the tail. The rest serves readers as long as it can.
  const uint64_t size = parts_.ring.bytes();
  const uint64_t wanted = parts_.ring.tail().value + size / 4;
  if (wanted <= size) return Lsn(0);
  return std::min(parts_.failure.failed() ? consumed() : durable(), Lsn(wanted - size));
}

void LogWriter::ReleaseRing() {
  const Lsn target = ReleaseTarget();
  const Lsn released = parts_.ring.released();
  if (target <= released) return;
  DEUT_DCHECK(target <= consumed());
  if (parts_.ring.has_waiters() || target.value - released.value >= parts_.ring.bytes() / kReleaseSteps)
    parts_.ring.Release(target);
}

}  // namespace deut::tc
