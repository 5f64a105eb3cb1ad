#include "tc/redo_log/redo_log.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/runtime/before_wait.h"
#include "common/sync/mutex.h"
#include "common/testing/test_points.h"
#include "tc/redo_log/block_format.h"
#include "tc/redo_log/durable_wait.h"
#include "tc/redo_log/log_failure.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_signal.h"
#include "tc/redo_log/log_writer.h"
#include "tc/redo_log/read_back.h"
#include "tc/redo_log/record_codec.h"
#include "tc/redo_log/record_source.h"
#include "tc/redo_log/recovered_outcomes.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/segment_set.h"
#include "tc/redo_log/timestamp_reservation.h"

namespace deut::tc {
namespace {

constexpr uint32_t kFullDiskRetryMs = 200;
constexpr uint32_t kLaggingRetryMs = 5;
// Past tails of the log that are remembered for keep_time.
constexpr int kTailsKept = 64;
constexpr uint64_t kLaggingReservePart = 4;
// Who has less time than this does not wait for the device itself.
constexpr Duration kNearDeadline = seconds(1);
// Holds every kind of record but transactions.
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
  if (options.timestamp_block < 2) return wrong("timestamp_block is below 2");
  return Status::Ok();
}

class Reader final : public LogReader {
 public:
  Reader(Runtime& runtime, LogWriter& writer, RecordSource sequential, RecordSource chunks, Lsn from)
      : writer_(writer),
        wait_(runtime, writer, Hurry::kInTime),
        sequential_(std::move(sequential)),
        chunks_(std::move(chunks)),
        position_(from) {}

  Status Next(LogRecord* record, Deadline deadline) override {
    if (position_ >= writer_.durable()) DEUT_RETURN_IF_ERROR(wait_.Wait(position_, deadline));
    DEUT_RETURN_IF_ERROR(sequential_.Fetch(position_, record));
    position_ = record->end;
    return Status::Ok();
  }

  Lsn position() const override { return position_; }
  void Seek(Lsn lsn) override { position_ = lsn; }

  Status ReadChunk(const LogRecord& commit, Lsn lsn, LogRecord* chunk) override {
    DEUT_RETURN_IF_ERROR(chunks_.Fetch(lsn, chunk));
    if (chunk->type != RecordType::kChunk || chunk->epoch != commit.epoch || chunk->timestamp != commit.timestamp) {
      return DEUT_ERROR(kCorruption, "the commit at LSN ", commit.lsn.value, " names LSN ", lsn.value,
                        ", where no chunk of its transaction is");
    }
    return Status::Ok();
  }

 private:
  LogWriter& writer_;
  DurableWait wait_;
  RecordSource sequential_;
  RecordSource chunks_;
  Lsn position_;
};

}  // namespace

struct RedoLog::Parts {
  Parts(RedoLogOptions o, Runtime& r, std::unique_ptr<FileLock> l, std::unique_ptr<IoQueue> q, Storage& storage,
        RecoveredChain chain, LogState state)
      : options(std::move(o)),
        runtime(r),
        base(chain.end.lsn),
        tc(state.tc),
        epoch(state.epoch),
        nonce(state.nonce),
        lock(std::move(l)),
        failure(options.on_failure),
        queue(std::move(q)),
        signal(runtime, queue.get()),
        ring(options.ring_bytes, chain.end.lsn, runtime, signal),
        segments(
            {.directory = options.directory, .segment_bytes = options.segment_bytes, .spares = options.spare_segments},
            runtime, storage, std::move(chain.segments), chain.next_number, [this] { signal.Notify(); },
            [this](const Status& status) {
              failure.Report(status);
              signal.Notify();
            }),
        writer({.block_bytes = options.block_bytes,
                .max_in_flight = options.max_in_flight,
                .max_small_in_flight = std::min(options.max_small_in_flight, options.max_in_flight),
                .device_timeout = options.device_timeout,
                .linger = options.linger},
               {runtime, *queue, signal, ring, segments, waiters, failure}, state,
               {.lsn = chain.end.lsn, .checksum = chain.checksum}),
        // All up to the recovered bound has been drawn or given up: this life's first block begins there, and is not durable yet.
        reservation(runtime, ring, writer, options.timestamp_block, state.reserved),
        read_back(options.read_back_bytes, runtime, ring, writer, segments),
        mutex(runtime),
        redo_start(state.redo_start),
        known_dcs(state.known_dcs.size()) {
    for (size_t i = 0; i < known_dcs.size(); ++i) known_dcs[i].dc = state.known_dcs[i];
  }

  AppendResult Append(RecordType type, std::string body_bytes) {
    const BytesBody body{std::move(body_bytes)};
    const RecordWord word = MakeRecordWord(type, body.Bytes());
    const Lsn lsn = ring.Append(word, body);
    return AppendResult{.lsn = lsn, .first = lsn, .end = Lsn(lsn.value + word.bytes)};
  }

  AppendResult AppendTransaction(RecordType type, const TransactionBody& body) {
    const RecordWord word = MakeRecordWord(type, body.Bytes());
    DEUT_CHECK(word.bytes <= options.max_record_bytes);
    const Lsn lsn = ring.Append(word, body);
    return AppendResult{.lsn = lsn, .first = lsn, .end = Lsn(lsn.value + word.bytes)};
  }

  // Where the log may be cut now.
  Lsn CutNow();

  RecordSource NewSource() { return RecordSource(ring, writer, segments, source_counters); }

  const RedoLogOptions options;
  Runtime& runtime;
  const Lsn base;  // where this life's records begin
  const TcId tc;
  const TcEpoch epoch;
  const uint64_t nonce;
  const std::unique_ptr<FileLock> lock;
  LogFailure failure;
  const std::unique_ptr<IoQueue> queue;
  LogSignal signal;
  LogRing ring;
  DurabilityWaiters waiters;
  SegmentSet segments;
  LogWriter writer;
  TimestampReservation reservation;
  RecordSourceCounters source_counters;
  ReadBack read_back;
  std::function<Timestamp(Lsn cut)> forget;
  // Not on the path of any commit.
  Mutex mutex;
  RedoStart redo_start DEUT_GUARDED_BY(mutex);   // the last durable one
  Lsn redo_start_logged DEUT_GUARDED_BY(mutex);  // the last appended one
  struct KnownDc {
    DcId dc;
    std::optional<Lsn> lsn;  // of the record that this life has appended; none: an earlier life's
  };
  // The log's tail at past times, for keep_time.
  struct TailAt {
    MonotonicTime at;
    Lsn lsn;
  };
  std::deque<TailAt> tails DEUT_GUARDED_BY(mutex);
  Lsn keep_from DEUT_GUARDED_BY(mutex);
  std::vector<KnownDc> known_dcs DEUT_GUARDED_BY(mutex);  // appended, perhaps not durable yet
};

namespace {

// Removes what lies behind the chain, newest first, so that a crash leaves no gap in the numbers.
Status RemoveStale(Storage& storage, const std::string& directory, const std::vector<uint64_t>& stale) {
  for (auto number = stale.rbegin(); number != stale.rend(); ++number) {
    DEUT_RETURN_IF_ERROR(storage.Remove(Concat(directory, "/", SegmentName(*number))));
    DEUT_RETURN_IF_ERROR(storage.SyncDirectory(directory));
  }
  return Status::Ok();
}

// Gives back the space behind the chain in its last segment, which nobody will use: on a full disk that is what was kept in reserve.
Status GiveBackTail(Storage& storage, const std::string& directory, const Cut& end) {
  const std::string path = Concat(directory, "/", SegmentName(end.segment));
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage.Open(path, OpenOptions{.writable = true}));
  DEUT_RETURN_IF_ERROR(file->Truncate(end.offset));
  return file->Sync();
}

// The new life's first segment. The full disk that ended the one before must not keep this one from starting, for it is what lets segments
// go: then the segment takes the place of the reserve.
Status CreateFirstSegment(SegmentSet& segments, Storage& storage, const std::string& directory,
                          const RecoveredLog& recovered) {
  const Status created = segments.CreateSpare();
  if (created != ErrorCode::kResourceExhausted || recovered.created) return created;
  if (!DEUT_OMITTED("X7.start_in_reserve")) DEUT_RETURN_IF_ERROR(GiveBackTail(storage, directory, recovered.cut));
  if (segments.CreateShortSpare().ok()) return Status::Ok();
  return DEUT_ERROR(kResourceExhausted, created.message(),
                    "; the transaction component starts when there is space for a segment of its log");
}

// What the new life begins with.
Result<LogState> NewLife(const RecoveredChain& chain, TcId wanted, const std::string& directory, Runtime& runtime) {
  LogState state = chain.state;
  if (chain.empty) {
    state = LogState();
    state.tc = wanted;
    state.reserved = Timestamp(1);
    state.redo_start.lsn = chain.end.lsn;
    while (state.tc.value == 0) state.tc = TcId(runtime.RandomSeed());
  } else if (wanted.value != 0 && wanted != state.tc) {
    return DEUT_ERROR(kInvalidArgument, "the redo log in ", directory, " is that of transaction component ",
                      state.tc.value, ", not of ", wanted.value);
  }
  state.epoch = TcEpoch(chain.state.epoch.value + 1);
  state.nonce = runtime.RandomSeed();
  return state;
}

}  // namespace

Result<std::unique_ptr<RedoLog>> RedoLog::Open(const RedoLogOptions& options, Runtime& runtime, Storage& storage,
                                               RecoveredLog* recovered, const std::function<Status()>& locked) {
  DEUT_RETURN_IF_ERROR(CheckOptions(options));
  DEUT_RETURN_IF_ERROR(storage.CreateDirectory(options.directory));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, storage.Lock(Concat(options.directory, "/LOCK")));
  if (locked) DEUT_RETURN_IF_ERROR(locked());
  RecoveredOutcomes outcomes(options.max_outcomes);
  DEUT_ASSIGN_OR_RETURN(RecoveredChain chain, RecoverChain(storage, options.directory, &outcomes));
  DEUT_ASSIGN_OR_RETURN(const LogState state, NewLife(chain, options.tc, options.directory, runtime));
  DEUT_RETURN_IF_ERROR(WriteAgain(storage, options.directory, chain.unproven));
  DEUT_RETURN_IF_ERROR(RemoveStale(storage, options.directory, chain.stale));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue, storage.NewQueue(options.max_in_flight + 1));

  *recovered = RecoveredLog{.created = chain.empty,
                            .tc = state.tc,
                            .epoch = state.epoch,
                            .nonce = state.nonce,
                            .first_timestamp = state.reserved,
                            .first_lsn = chain.first_lsn,
                            .end_lsn = chain.end.lsn,
                            .redo_start = state.redo_start,
                            .known_dcs = state.known_dcs,
                            .low_water = state.low_water,
                            .cut = chain.end,
                            .dropped_bytes = chain.dropped_bytes,
                            .outcomes = std::move(outcomes.commits),
                            .outcome_horizon = outcomes.horizon};
  auto parts =
      std::make_unique<Parts>(options, runtime, std::move(lock), std::move(queue), storage, std::move(chain), state);
  DEUT_RETURN_IF_ERROR(CreateFirstSegment(parts->segments, storage, options.directory, *recovered));
  std::unique_ptr<RedoLog> log(new RedoLog(std::move(parts)));
  DEUT_RETURN_IF_ERROR(log->StartLife(*recovered));
  return log;
}

Status RedoLog::StartLife(const RecoveredLog& recovered) {
  parts_->writer.Start();
  parts_->segments.Start();
  // First of all the cut: from here on nothing behind it counts, whatever the disk still brings forth.
  if (!recovered.created && !DEUT_OMITTED("D2.log_cut"))
    parts_->Append(RecordType::kEndOfEpoch, EncodeCutBody(recovered.cut));
  const AppendResult start = parts_->Append(RecordType::kEpochStart, EncodeEpochStartBody(tc(), epoch(), nonce()));
  DEUT_RETURN_IF_ERROR(WaitDurable(start.lsn, kNoDeadline));
  return EnsureReserved(recovered.first_timestamp, kNoDeadline);
}

RedoLog::RedoLog(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RedoLog::~RedoLog() { Stop(); }

void RedoLog::Stop() {
  parts_->writer.Stop();
  parts_->segments.Stop();
}

Lsn RedoLog::tail() const { return parts_->ring.tail(); }
Lsn RedoLog::durable() const { return parts_->writer.durable(); }
Lsn RedoLog::first_lsn() const { return parts_->segments.first_lsn(); }
TcId RedoLog::tc() const { return parts_->tc; }
TcEpoch RedoLog::epoch() const { return parts_->epoch; }
uint64_t RedoLog::nonce() const { return parts_->nonce; }
Status RedoLog::failure() const { return parts_->failure.status(); }

size_t RedoLog::CommitBytes(absl::Span<const Update> updates, TransactionId id) {
  const TransactionBody body{.timestamp = {}, .epoch = {}, .updates = updates, .chunks = {}, .id = id};
  return MakeRecordWord(body.commit_type(), body.Bytes()).bytes;
}

namespace {

// Of the updates of one record, which are those of `body`.
void PlaceUpdates(Lsn record, const TransactionBody& body, absl::Span<Lsn> places) {
  uint64_t at = record.value + kRecordWordBytes + body.BytesBeforeUpdates();
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = Lsn(at);
    at += UpdateBytes(body.updates[i]);
  }
}

}  // namespace

AppendResult RedoLog::AppendCommit(Timestamp timestamp, absl::Span<const Update> updates, absl::Span<const Lsn> chunks,
                                   TransactionId id, absl::Span<Lsn> places) {
  DEUT_DCHECK(places.empty() || places.size() == updates.size());
  TransactionBody body{.timestamp = timestamp, .epoch = epoch(), .updates = updates, .chunks = chunks, .id = id};
  Lsn first = chunks.empty() ? Lsn(UINT64_MAX) : *std::min_element(chunks.begin(), chunks.end());
  absl::InlinedVector<Lsn, 8> all_chunks;
  if (body.Bytes() > parts_->options.chunk_bytes + kTransactionHeaderBytes + kTransactionIdBytes) {
    all_chunks.assign(chunks.begin(), chunks.end());
    // What is over goes ahead in chunks; the last run of updates stays with the commit.
    for (;;) {
      size_t count = 0;
      for (size_t bytes = 0; count < updates.size(); ++count) {
        bytes += UpdateBytes(updates[count]);
        if (count > 0 && bytes > parts_->options.chunk_bytes) break;
      }
      if (count == updates.size()) break;
      all_chunks.push_back(AppendChunk(timestamp, updates.first(count)).lsn);
      if (!places.empty()) {
        const TransactionBody chunk{
            .timestamp = timestamp, .epoch = epoch(), .updates = updates.first(count), .chunks = {}};
        PlaceUpdates(all_chunks.back(), chunk, places.first(count));
        places.remove_prefix(count);
      }
      first = std::min(first, all_chunks.back());
      updates.remove_prefix(count);
    }
    body.updates = updates;
    body.chunks = all_chunks;
  }
  AppendResult result = parts_->AppendTransaction(body.commit_type(), body);
  PlaceUpdates(result.lsn, body, places);
  result.first = std::min(first, result.lsn);
  return result;
}

AppendResult RedoLog::AppendChunk(Timestamp timestamp, absl::Span<const Update> updates) {
  return parts_->AppendTransaction(RecordType::kChunk,
                                   {.timestamp = timestamp, .epoch = epoch(), .updates = updates, .chunks = {}});
}

AppendResult RedoLog::AppendLowWater(Timestamp low_water) {
  return parts_->Append(RecordType::kLowWater, EncodeTimestampBody(low_water));
}

void RedoLog::set_forget(std::function<Timestamp(Lsn cut)> forget) { parts_->forget = std::move(forget); }

Status RedoLog::AddKnownDc(DcId dc, Deadline deadline) {
  Lsn lsn;
  {
    MutexLock lock(parts_->mutex);
    std::vector<Parts::KnownDc>& known = parts_->known_dcs;
    const auto found = std::ranges::find(known, dc, &Parts::KnownDc::dc);
    if (found != known.end()) {
      if (!found->lsn) return Status::Ok();
      lsn = *found->lsn;  // whoever asked for it first may not have waited to the end
    } else if (known.size() >= kMaxKnownDcs) {
      return DEUT_ERROR(kResourceExhausted, "the redo log knows ", kMaxKnownDcs, " data components already, its limit");
    } else {
      lsn = parts_->Append(RecordType::kKnownDc, EncodeKnownDcBody(dc)).lsn;
      known.push_back({.dc = dc, .lsn = lsn});
    }
  }
  return WaitDurable(lsn, deadline);
}

Status RedoLog::CheckSpace(size_t bytes) const {
  if (parts_->failure.failed())
    return DEUT_ERROR(kUnavailable, "the redo log has failed: ", parts_->failure.status().ToString());
  if (parts_->writer.stopping()) return DEUT_ERROR(kUnavailable, "the redo log is stopping");
  const Lsn consumed = parts_->writer.consumed();
  const uint64_t free = parts_->writer.segment_room() + parts_->segments.spare_bytes();
  const uint64_t pending = tail().value - consumed.value;
  // While allocation merely lags behind, most of the reserve may be used: the next segment is on its way. But what a start takes stays: perhaps
  // the disk is full and the helper does not know yet.
  const bool full = parts_->segments.disk_full();
  const uint64_t whole = parts_->options.space_reserve_bytes;
  const uint64_t reserve =
      full ? whole : std::max(whole / kLaggingReservePart, std::min(whole, 2 * SegmentSet::kShortestSegment));
  if (free >= pending + bytes + reserve) return Status::Ok();
  return DEUT_ERROR(kResourceExhausted,
                    full ? "the disk of the redo log is full" : "the redo log waits for the allocation of a segment",
                    " (", parts_->options.directory, "): ", free, " bytes are left of what was allocated, ", pending,
                    " of them are taken and ", reserve, " are kept in reserve, for ", bytes, " more",
                    full ? Concat("; reads go on, and commits again once ", parts_->options.segment_bytes,
                                  " bytes are free there, or the data component has made stable what the log holds")
                         : "")
      .WithRetryAfter(full ? kFullDiskRetryMs : kLaggingRetryMs);
}

Status RedoLog::WaitDurable(Lsn lsn, Deadline deadline) {
  if (durable() > lsn) return Status::Ok();
  // Also who leads blocks.
  BeforeWait::Tell();
  const bool near = deadline != kNoDeadline && deadline < parts_->runtime.Now() + kNearDeadline;
  if (!near && parts_->writer.Lead(lsn)) return Status::Ok();
  return DurableWait(parts_->runtime, parts_->writer, Hurry::kNow).Wait(lsn, deadline);
}

bool RedoLog::NotifyWhenDurable(Lsn lsn, DurabilityWaiter* waiter, Hurry hurry) {
  return parts_->writer.NotifyWhenDurable(lsn, waiter, hurry);
}

Timestamp RedoLog::reserved_below() const { return parts_->reservation.durable_below(); }

Status RedoLog::EnsureReserved(Timestamp timestamp, Deadline deadline) {
  return parts_->reservation.Ensure(timestamp, deadline);
}

Status RedoLog::AdvanceRedoStart(const RedoStart& redo_start, Deadline deadline) {
  if (redo_start.stable.size() > kMaxKnownDcs) {
    return DEUT_ERROR(kInvalidArgument, "redo start with ", redo_start.stable.size(), " positions, at most ",
                      kMaxKnownDcs, " are possible");
  }
  AppendResult appended;
  {
    MutexLock lock(parts_->mutex);
    const Lsn least = std::max(parts_->redo_start.lsn, parts_->redo_start_logged);
    if (redo_start.lsn < least || redo_start.lsn > durable()) {
      return DEUT_ERROR(kInvalidArgument, "redo start ", redo_start.lsn.value, " lies outside of the last one, ",
                        least.value, ", and the durable LSN, ", durable().value);
    }
    parts_->redo_start_logged = redo_start.lsn;
    appended = parts_->Append(RecordType::kRedoStart, EncodeRedoStartBody(redo_start));
  }
  if (!DEUT_OMITTED("S2.log_before_trim")) DEUT_RETURN_IF_ERROR(WaitDurable(appended.lsn, deadline));
  {
    MutexLock lock(parts_->mutex);
    if (redo_start.lsn >= parts_->redo_start.lsn) parts_->redo_start = redo_start;
  }
  return LetGoOfKept(deadline);
}

Lsn RedoLog::Parts::CutNow() {
  const MonotonicTime now = runtime.Now();
  // Files, not records: what is written little by little takes more of the disk than it holds.
  const Lsn by_size = segments.BeginOfNewest(options.keep_bytes / options.segment_bytes);
  MutexLock locked(mutex);
  if (options.keep_bytes == 0 || segments.disk_full()) return redo_start.lsn;
  if (tails.empty() || now - tails.back().at >= options.keep_time / kTailsKept) tails.push_back({now, ring.tail()});
  while (!tails.empty() && now - tails.front().at >= options.keep_time) {
    keep_from = tails.front().lsn;
    tails.pop_front();
  }
  return std::min(redo_start.lsn, std::max(keep_from, by_size));
}

Status RedoLog::LetGoOfKept(Deadline deadline) {
  const Lsn cut = parts_->segments.Boundary(parts_->CutNow());
  if (cut <= first_lsn()) return Status::Ok();
  const Timestamp horizon = parts_->forget ? parts_->forget(cut) : Timestamp{0};
  if (horizon > Timestamp{0} && !DEUT_OMITTED("outcome.log_horizon")) {
    const AppendResult appended = parts_->Append(RecordType::kOutcomeHorizon, EncodeTimestampBody(horizon));
    DEUT_RETURN_IF_ERROR(WaitDurable(appended.lsn, deadline));
  }
  parts_->segments.TrimTo(cut, durable());
  return Status::Ok();
}

RedoStart RedoLog::redo_start() const {
  MutexLock lock(parts_->mutex);
  return parts_->redo_start;
}

std::unique_ptr<LogReader> RedoLog::NewReader(Lsn from) {
  return std::make_unique<Reader>(parts_->runtime, parts_->writer, parts_->NewSource(), parts_->NewSource(), from);
}

Status RedoLog::ReadValue(const LoggedPut& put, std::string* value) { return parts_->read_back.Read(put, value); }

RedoLogCounters RedoLog::counters() const {
  // Before the tail, so that none of the differences is negative.
  const Lsn durable_lsn = durable();
  const Lsn consumed = parts_->writer.consumed();
  return RedoLogCounters{.records = parts_->writer.records(),
                         .record_bytes = tail().value - parts_->base.value,
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
                         .free_bytes = parts_->writer.segment_room() + parts_->segments.spare_bytes(),
                         .untaken_bytes = tail().value - consumed.value,
                         .undurable_bytes = tail().value - durable_lsn.value,
                         .fills_from_ring = parts_->source_counters.from_ring.load(std::memory_order_relaxed),
                         .fills_from_disk = parts_->source_counters.from_disk.load(std::memory_order_relaxed),
                         .values_from_ring = parts_->read_back.from_ring(),
                         .values_from_kept = parts_->read_back.from_kept(),
                         .values_from_disk = parts_->read_back.from_disk()};
}

}  // namespace deut::tc
