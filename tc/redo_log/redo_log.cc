#include "tc/redo_log/redo_log.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/runtime/blocking_hook.h"
#include "common/testing/test_points.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/record_codec.h"
#include "tc/log_format/transaction_records.h"
#include "tc/redo_log/blocking_durability_wait.h"
#include "tc/redo_log/known_dcs.h"
#include "tc/redo_log/log_failure.h"
#include "tc/redo_log/log_folder.h"
#include "tc/redo_log/log_readers.h"
#include "tc/redo_log/log_retention.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_space.h"
#include "tc/redo_log/log_writer.h"
#include "tc/redo_log/read_back.h"
#include "tc/redo_log/recovered_outcomes.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/segment_set.h"
#include "tc/redo_log/timestamp_reservation.h"
#include "tc/redo_log/writer_role.h"

namespace deut::tc {
namespace {

// A caller with less time than this does not write the record itself, because it could not stop waiting for the device.
constexpr Duration kNearDeadline = seconds(1);
// Large enough for every kind of record except transactions.
constexpr size_t kSmallestRecordLimit = 4096;

Status CheckOptions(const RedoLogOptions& options) {
  const auto wrong = [](const std::string& what) { return DEUT_ERROR(kInvalidArgument, "redo log options: ", what); };
  if (options.directory.empty()) return wrong("directory is empty");
  if (options.max_record_bytes < kSmallestRecordLimit)
    return wrong(Concat("max_record_bytes is below ", kSmallestRecordLimit));
  if (options.max_record_bytes > (size_t{1} << 30)) return wrong("max_record_bytes is over 1 GiB");
  if (!std::has_single_bit(options.ring_bytes)) return wrong("ring_bytes is no power of two");
  if (options.ring_bytes < 4 * options.max_record_bytes) return wrong("ring_bytes is below 4 * max_record_bytes");
  if (options.segment_bytes % kBlockAlignment != 0) return wrong("segment_bytes is no multiple of 4 KiB");
  if (options.segment_bytes < 4 * options.max_record_bytes) return wrong("segment_bytes is below 4 * max_record_bytes");
  if (options.chunk_bytes == 0 || options.chunk_bytes > options.max_record_bytes / 2)
    return wrong("chunk_bytes is over max_record_bytes / 2");
  if (options.block_bytes == 0 || options.block_bytes > options.max_record_bytes)
    return wrong("block_bytes is over max_record_bytes");
  if (options.max_in_flight == 0 || options.max_small_in_flight == 0) return wrong("nothing may be in flight");
  if (options.spare_segments == 0) return wrong("spare_segments is 0");
  if (options.timestamp_block == 0) return wrong("timestamp_block is 0");
  return Status::Ok();
}

// Decoding refuses a record whose sequences do not rise, so a commit with such a record could not be recovered.
bool SequencesRise(absl::Span<const Update> updates) {
  return std::ranges::adjacent_find(updates, std::ranges::greater_equal(), &Update::sequence) == updates.end();
}

}  // namespace

struct RedoLog::Parts {
  Parts(RedoLogOptions o, Runtime& r, std::unique_ptr<FileLock> lock, std::unique_ptr<IoQueue> q, Storage& storage,
        RecoveredChain chain, const LogState& state)
      : options(std::move(o)),
        runtime(r),
        tc(state.tc),
        start{.epoch = state.epoch, .nonce = state.nonce, .begin = chain.end.lsn},
        folder(storage, options.directory, std::move(lock), chain),
        failure(options.on_failure),
        queue(std::move(q)),
        role(runtime, queue.get()),
        ring(options.ring_bytes, chain.end.lsn, runtime, role),
        segments(
            {.directory = options.directory, .segment_bytes = options.segment_bytes, .spares = options.spare_segments},
            runtime, storage, std::move(chain.segments), chain.next_number,
            [this] {
              role.Notify();
              space.Changed();
            },
            [this](const Status& status) {
              failure.Report(status);
              role.Notify();
            }),
        writer({.block_bytes = options.block_bytes,
                .max_in_flight = options.max_in_flight,
                .max_small_in_flight = std::min(options.max_small_in_flight, options.max_in_flight),
                .device_timeout = options.device_timeout,
                .slow_after = options.slow_after,
                .linger = options.linger},
               {runtime, *queue, role, ring, segments, durability_queue, failure}, state,
               {.lsn = chain.end.lsn, .checksum = chain.checksum}),
        space({.directory = options.directory,
               .segment_bytes = options.segment_bytes,
               .reserve_bytes = options.space_reserve_bytes,
               .chunk_bytes = options.chunk_bytes},
              runtime, storage, ring, writer, segments, failure),
        // Earlier processes have drawn or given up all timestamps below the recovered bound. This start's first block begins there, and is not
        // durable yet.
        reservation(runtime, ring, writer, options.timestamp_block, state.reserved),
        readers(runtime, ring, writer, segments),
        read_back(options.read_back_bytes, runtime, ring, writer, segments),
        retention(
            {.keep_time = options.keep_time, .keep_bytes = options.keep_bytes, .segment_bytes = options.segment_bytes},
            runtime, ring, segments, writer.watermarks(), state.redo_start),
        known_dcs(runtime, ring, state.known_dcs) {
    segments.SetDemand(&space);
  }

  AppendResult AppendTransaction(RecordType type, const TransactionBody& body, bool claimed) {
    const size_t body_bytes = body.Bytes();
    // Checked before the length is put into the 32 bits of the record's word.
    DEUT_CHECK(RecordBytesFor(body_bytes) <= options.max_record_bytes);
    const RecordWord word = MakeRecordWord(type, body_bytes);
    DEUT_DCHECK(SequencesRise(body.updates));
    const Lsn lsn = ring.Append(word, body, claimed && DEUT_STEP("D5.claim"));
    return AppendResult{.lsn = lsn, .first = lsn, .end = Lsn(lsn.value + word.bytes)};
  }

  const RedoLogOptions options;
  Runtime& runtime;
  const TcId tc;
  const LogStart start;
  LogFolder folder;  // holds the lock until all else has ended
  std::atomic<bool> begun{false};
  LogFailure failure;
  const std::unique_ptr<IoQueue> queue;
  WriterRole role;
  LogRing ring;
  DurabilityQueue durability_queue;
  SegmentSet segments;
  LogWriter writer;
  LogSpace space;
  TimestampReservation reservation;
  LogReaders readers;
  ReadBack read_back;
  LogRetention retention;
  KnownDcs known_dcs;
};

namespace {

// Returns the state with which this start begins: the recovered state, a higher epoch and a new nonce.
Result<LogState> NextEpochState(const RecoveredChain& chain, TcId wanted, const std::string& directory,
                                Runtime& runtime) {
  LogState state = chain.state;
  if (chain.empty) {
    state = LogState();
    state.tc = wanted;
    state.reserved = Timestamp(1);
    state.redo_start.lsn = chain.end.lsn;
    while (state.tc.value == 0) state.tc = TcId(runtime.RandomSeed());
    state.key = SipHashKey{.low = runtime.RandomSeed(), .high = runtime.RandomSeed()};
  } else if (wanted.value != 0 && wanted != state.tc) {
    return DEUT_ERROR(kInvalidArgument, "the redo log in ", directory, " is that of transaction component ",
                      state.tc.value, ", not of ", wanted.value);
  }
  if (chain.state.epoch.value >= kMaxLogNumber || chain.next_number >= kMaxLogNumber) {
    return DEUT_ERROR(kCorruption, "the redo log in ", directory, " has reached epoch ", chain.state.epoch.value,
                      " and segment ", chain.next_number, ", which no log does; nothing was changed");
  }
  state.epoch = TcEpoch(chain.state.epoch.value + 1);
  // No two starts have the same epoch (X5).
  DEUT_CHECK(chain.starts.empty() || chain.starts.back().epoch < state.epoch);
  state.nonce = runtime.RandomSeed();
  return state;
}

}  // namespace

Result<std::unique_ptr<RedoLog>> RedoLog::Open(const RedoLogOptions& options, Runtime& runtime, Storage& storage,
                                               RecoveredLog* recovered) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<RedoLog> log, Recover(options, runtime, storage, recovered));
  DEUT_RETURN_IF_ERROR(log->Begin());
  return log;
}

Result<std::unique_ptr<RedoLog>> RedoLog::Recover(const RedoLogOptions& options, Runtime& runtime, Storage& storage,
                                                  RecoveredLog* recovered) {
  DEUT_RETURN_IF_ERROR(CheckOptions(options));
  DEUT_RETURN_IF_ERROR(storage.CreateDirectory(options.directory));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, storage.Lock(Concat(options.directory, "/LOCK")));
  lock->RemoveWhenReleased(true);  // until Begin
  RecoveredOutcomes outcomes(options.max_outcomes);
  DEUT_ASSIGN_OR_RETURN(RecoveredChain chain, RecoverChain(storage, options.directory, &outcomes));
  DEUT_ASSIGN_OR_RETURN(const LogState state, NextEpochState(chain, options.tc, options.directory, runtime));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue, storage.NewQueue(options.max_in_flight + 1));
  if (outcomes.files_missing()) {
    LogWarning(options.directory, ": the redo log begins at LSN ", chain.first_lsn.value,
               ", but was trimmed only up to LSN ", outcomes.trimmed().value,
               ": its oldest files are missing. No update is lost, because redo starts at LSN ",
               chain.state.redo_start.lsn.value, "; transactions before timestamp ", outcomes.horizon.value,
               " that are not in the log are answered as too old to know");
  }

  *recovered = RecoveredLog{.created = chain.empty,
                            .tc = state.tc,
                            .epoch = state.epoch,
                            .nonce = state.nonce,
                            .first_timestamp = state.reserved,
                            .first_lsn = chain.first_lsn,
                            .starts = chain.starts,
                            .end_lsn = chain.end.lsn,
                            .last_shipped = std::max(chain.last_shipped, Lsn(chain.first_lsn.value - 1)),
                            .redo_start = state.redo_start,
                            .known_dcs = state.known_dcs,
                            .low_water = state.low_water,
                            .cut = chain.end,
                            .dropped_bytes = chain.dropped_bytes,
                            .outcomes = std::move(outcomes.commits),
                            .outcome_horizon = outcomes.horizon};
  DEUT_CHECK(chain.first_lsn <= state.redo_start.lsn);
  auto parts =
      std::make_unique<Parts>(options, runtime, std::move(lock), std::move(queue), storage, std::move(chain), state);
  return std::unique_ptr<RedoLog>(new RedoLog(std::move(parts)));
}

Status RedoLog::Begin() {
  DEUT_RETURN_IF_ERROR(parts_->folder.Prepare(parts_->segments));
  return StartWriting();
}

bool RedoLog::begun() const { return parts_->begun.load(std::memory_order_acquire); }

Status RedoLog::StartWriting() {
  Parts& p = *parts_;
  DEUT_CHECK(!begun());
  const Timestamp first_timestamp = reserved_below();  // earlier processes have drawn or given up those below it
  p.writer.Start();
  p.segments.Start();
  p.begun.store(true, std::memory_order_release);
  // The cut is logged first. From then on nothing behind it counts, even if a late write of an earlier process still reaches the disk.
  if (!p.folder.empty() && DEUT_STEP("D2.log_cut"))
    p.ring.AppendOwn(RecordType::kEndOfEpoch, EncodeCutBody(p.folder.cut()));
  const Lsn start = p.ring.AppendOwn(RecordType::kEpochStart, EncodeEpochStartBody(tc(), epoch(), nonce()));
  DEUT_RETURN_IF_ERROR(WaitDurable(start, kNoDeadline));
  return EnsureReserved(first_timestamp, kNoDeadline);
}

RedoLog::RedoLog(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RedoLog::~RedoLog() { Stop(); }

void RedoLog::Stop() {
  parts_->writer.Stop();
  parts_->segments.Stop();
}

Lsn RedoLog::tail() const { return parts_->ring.tail(); }
Lsn RedoLog::claimed() const { return Lsn(parts_->ring.claimed()); }
Lsn RedoLog::durable() const { return parts_->writer.durable(); }
Lsn RedoLog::first_lsn() const { return parts_->segments.first_lsn(); }
TcId RedoLog::tc() const { return parts_->tc; }
TcEpoch RedoLog::epoch() const { return parts_->start.epoch; }
uint64_t RedoLog::nonce() const { return parts_->start.nonce; }
Status RedoLog::failure() const { return parts_->failure.status(); }

namespace {

// Sets the places of the updates of the record [record, end), which are the updates of `body`.
void PlaceUpdates(Lsn record, Lsn end, const TransactionBody& body, absl::Span<Lsn> places) {
  uint64_t at = record.value + kRecordWordBytes + body.BytesBeforeUpdates();
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = Lsn(at);
    at += UpdateBytes(body.updates[i]);
  }
  // ReadValue finds the last update at its place: behind it is only the padding of the record.
  DEUT_DCHECK(places.empty() || (at <= end.value && end.value < at + kRecordAlignment));
}

}  // namespace

AppendResult RedoLog::AppendCommit(Timestamp timestamp, absl::Span<const Update> updates, absl::Span<const Lsn> chunks,
                                   TransactionId id, absl::Span<Lsn> places, SpaceClaim* claim) {
  DEUT_DCHECK(places.empty() || places.size() == updates.size());
  TransactionBody body{.timestamp = timestamp, .epoch = epoch(), .updates = updates, .chunks = chunks, .id = id};
  Lsn first = chunks.empty() ? Lsn(UINT64_MAX) : *std::min_element(chunks.begin(), chunks.end());
  absl::InlinedVector<Lsn, 8> all_chunks;
  uint64_t appended = 0;
  if (NeedsChunks(body.Bytes(), parts_->options.chunk_bytes)) {
    all_chunks.assign(chunks.begin(), chunks.end());
    // Chunks take the updates that do not fit into the commit record. The last updates stay with the commit.
    for (;;) {
      const size_t count = UpdatesOfChunk(updates, parts_->options.chunk_bytes);
      if (count == updates.size()) break;
      const AppendResult chunk_at = AppendChunk(timestamp, updates.first(count), claim != nullptr);
      appended += chunk_at.end.value - chunk_at.lsn.value;
      all_chunks.push_back(chunk_at.lsn);
      if (!places.empty()) {
        const TransactionBody chunk{
            .timestamp = timestamp, .epoch = epoch(), .updates = updates.first(count), .chunks = {}};
        PlaceUpdates(chunk_at.lsn, chunk_at.end, chunk, places.first(count));
        places.remove_prefix(count);
      }
      first = std::min(first, all_chunks.back());
      updates.remove_prefix(count);
    }
    body.updates = updates;
    body.chunks = all_chunks;
  }
  AppendResult result = parts_->AppendTransaction(body.commit_type(), body, claim != nullptr);
  DEUT_DCHECK(first == Lsn(UINT64_MAX) || std::ranges::max(body.chunks) < result.lsn);  // as decoding demands
  appended += result.end.value - result.lsn.value;
  if (claim != nullptr) {
    DEUT_DCHECK(claim->log_bytes() == appended);
    claim->MarkUsed(result.end);
  }
  PlaceUpdates(result.lsn, result.end, body, places);
  result.first = std::min(first, result.lsn);
  return result;
}

AppendResult RedoLog::AppendChunk(Timestamp timestamp, absl::Span<const Update> updates, bool claimed) {
  return parts_->AppendTransaction(
      RecordType::kChunk, {.timestamp = timestamp, .epoch = epoch(), .updates = updates, .chunks = {}}, claimed);
}

AppendResult RedoLog::AppendLowWater(Timestamp low_water) {
  std::string body = EncodeTimestampBody(low_water);
  const uint64_t bytes = MakeRecordWord(RecordType::kLowWater, body.size()).bytes;
  const Lsn lsn = parts_->ring.AppendOwn(RecordType::kLowWater, std::move(body));
  return AppendResult{.lsn = lsn, .first = lsn, .end = Lsn(lsn.value + bytes)};
}

void RedoLog::set_before_trim(std::function<Timestamp(Lsn cut)> before_trim) {
  parts_->retention.set_before_trim(std::move(before_trim));
}

Status RedoLog::AddKnownDc(DcId dc, Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(const std::optional<Lsn> lsn, parts_->known_dcs.Add(dc));
  return lsn ? WaitDurable(*lsn, deadline) : Status::Ok();
}

static_assert(RedoLog::kBytesBesideKeyAndValue == kUpdateHeaderBytes);

Result<SpaceClaim> RedoLog::ReserveSpace(absl::Span<const Update> updates, TransactionId id, Deadline deadline) {
  if (!begun()) return DEUT_ERROR(kUnavailable, "the redo log is not written to yet");
  const Footprint footprint = FootprintOf(updates, id.given(), parts_->options.chunk_bytes);
  if (footprint.largest_record > parts_->options.max_record_bytes) {
    return DEUT_ERROR(kInvalidArgument, "a transaction of ", footprint.log_bytes, " bytes needs a record of ",
                      footprint.largest_record, " bytes, because of one large update or of the number of its parts; ",
                      "the limit is ", parts_->options.max_record_bytes);
  }
  return parts_->space.Claim(footprint, deadline);
}

Status RedoLog::CheckSpace(size_t bytes) const {
  if (!begun()) return DEUT_ERROR(kUnavailable, "the redo log is not written to yet");
  return parts_->space.Check(bytes);
}

Status RedoLog::WaitDurable(Lsn lsn, Deadline deadline) {
  if (durable() > lsn) return Status::Ok();
  if (!begun()) {
    return DEUT_ERROR(kUnavailable, "the redo log in ", parts_->options.directory, " is recovered up to LSN ",
                      durable().value, " and not written to yet");
  }
  // Announced before Lead as well, because a thread that leads blocks, too.
  BlockingHook::NotifyBlocking();
  const bool near = deadline != kNoDeadline && deadline < parts_->runtime.Now() + kNearDeadline;
  if (!near && parts_->writer.Lead(lsn)) return Status::Ok();
  return BlockingDurabilityWait(parts_->runtime, parts_->writer, Urgency::kUrgent).Wait(lsn, deadline);
}

bool RedoLog::NotifyWhenDurable(Lsn lsn, DurabilityCallback* waiter, Urgency urgency) {
  return parts_->writer.NotifyWhenDurable(lsn, waiter, urgency);
}

Timestamp RedoLog::reserved_below() const { return parts_->reservation.durable_below(); }

Status RedoLog::EnsureReserved(Timestamp timestamp, Deadline deadline) {
  return parts_->reservation.Ensure(timestamp, deadline);
}

Status RedoLog::AdvanceRedoStart(const RedoStart& redo_start, Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(const Lsn appended, parts_->retention.AppendRedoStart(redo_start));
  if (DEUT_STEP("S2.log_before_trim")) DEUT_RETURN_IF_ERROR(WaitDurable(appended, deadline));
  parts_->retention.NoteDurable(redo_start);
  return TrimKeptForOutcomes(deadline);
}

Status RedoLog::TrimKeptForOutcomes(Deadline deadline) {
  const Lsn cut = parts_->segments.FirstLsnAfterTrimTo(parts_->retention.CutNow());
  if (cut <= first_lsn()) return Status::Ok();
  const Timestamp horizon = parts_->retention.HorizonBeforeTrim(cut);
  if (horizon > Timestamp{0} && DEUT_STEP("outcome.log_horizon"))
    parts_->ring.AppendOwn(RecordType::kOutcomeHorizon, EncodeTimestampBody(horizon));
  // The TRIMMED record lies above the cut, so the remaining log always holds the last one. By it a later start can tell trimmed files from missing
  // files. Both records are durable before the first file is removed.
  if (DEUT_STEP("outcome.log_trimmed")) {
    const Lsn appended = parts_->ring.AppendOwn(RecordType::kTrimmed, EncodeTrimmedBody(cut));
    if (DEUT_STEP("S2.log_before_trim")) DEUT_RETURN_IF_ERROR(WaitDurable(appended, deadline));
  }
  parts_->writer.watermarks().CheckTrim(cut);
  parts_->segments.TrimTo(cut, durable());
  return Status::Ok();
}

RedoStart RedoLog::redo_start() const { return parts_->retention.redo_start(); }

std::unique_ptr<LogReader> RedoLog::NewReader(Lsn from) { return parts_->readers.NewReader(from); }

Status RedoLog::ReadValue(const LoggedPut& put, std::string* value) { return parts_->read_back.Read(put, value); }

RedoLogCounters RedoLog::counters() const {
  // These are read before the tail, so that none of the differences is negative.
  const Lsn durable_lsn = durable();
  const Lsn consumed = parts_->writer.consumed();
  DEUT_CHECK(durable_lsn <= consumed);
  DEUT_CHECK(consumed <= tail());
  return RedoLogCounters{.records = parts_->writer.records(),
                         .record_bytes = tail().value - parts_->start.begin.value,
                         .blocks = parts_->writer.blocks(),
                         .block_bytes = parts_->writer.block_bytes(),
                         .led_blocks = parts_->writer.led_blocks(),
                         .ring_waits = parts_->ring.waits(),
                         .ring_waiters = parts_->ring.waiters(),
                         .log_thread_sleeps = parts_->writer.sleeps(),
                         .segments = parts_->segments.live_count(),
                         .spare_segments = parts_->segments.spare_count(),
                         .segments_recycled = parts_->segments.recycled(),
                         .segments_removed = parts_->segments.removed(),
                         .free_bytes = parts_->space.free_bytes(),
                         .untaken_bytes = tail().value - consumed.value,
                         .undurable_bytes = tail().value - durable_lsn.value,
                         .fills_from_ring = parts_->readers.fills_from_ring(),
                         .fills_from_disk = parts_->readers.fills_from_disk(),
                         .values_from_ring = parts_->read_back.from_ring(),
                         .values_from_kept = parts_->read_back.from_cache(),
                         .values_from_disk = parts_->read_back.from_disk()};
}

}  // namespace deut::tc
