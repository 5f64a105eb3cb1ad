// The part of RecordOperations that applies the redo log (record_operations.h): batches, their runs of updates, low-water.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/record_ops/record_operations.h"
#include "protocol/table_options.h"

namespace deut::dc {
namespace {

// Bytes of payload that may be applied between two checks of the memory budget.
constexpr size_t kBytesPerBudgetCheck = 64 << 10;

// Number of updates whose cache misses overlap: about as many as a processor has in flight at once.
constexpr size_t kMaxUpdatesPerGroup = BwTree::kMaxLeavesPerCall;

// A run of at least kUpdatesToShare updates is shared with helpers, which take some tens of microseconds to wake.
// kUpdatesPerPiece updates are one piece of work, of about a hundred microseconds.
constexpr size_t kUpdatesToShare = 256;
constexpr size_t kUpdatesPerPiece = 64;
// Number of updates that are listed at a time, on the stack (144 KiB); a batch has about as many. For a heap list of
// this size, the allocator would call the system each time.
constexpr size_t kMaxUpdatesPerRun = SupersededUpdates::kMaxExamined;

// Pause between two checks whether a page that has grown too large may be split again.
constexpr Duration kGateClosedPause = std::chrono::microseconds(100);

bool IsUpdate(const LogEntryView& entry) {
  return entry.kind == LogEntryKind::kPut || entry.kind == LogEntryKind::kDelete;
}

}  // namespace

void RecordOperations::BeginStream() { trees_.consolidation_timestamp().store(0, std::memory_order_release); }

Status RecordOperations::ApplyBatch(const LogBatch& batch, Position applied) {
  UnflushedUpdates::Batch unflushed(unflushed_, batch.entries.size());
  if (DEUT_OMITTED("X1.wait_for_stream")) {  // omitted step: takes over the bound before its place
    for (LogBatch::Iterator it(batch); it.Valid(); it.Next()) {
      if (it.entry().kind == LogEntryKind::kLowWater) ApplyLowWater(it.entry().timestamp);
    }
  }
  // Redo lasts until the new stream has sent a low-water: until then its updates may already be in the pages.
  DEUT_IN_FLIGHT_IF(trees_.consolidation_timestamp().load(std::memory_order_relaxed) == 0, "dc.redo");
  absl::InlinedVector<LogEntryView, kMaxUpdatesPerRun> updates;
  std::atomic<size_t> bytes{kBytesPerBudgetCheck - 1};  // so that the first update checks
  for (LogBatch::Iterator it(batch); it.Valid();) {
    updates.clear();
    for (; it.Valid() && IsUpdate(it.entry()) && updates.size() < kMaxUpdatesPerRun; it.Next()) {
      if (it.entry().position <= applied) {
        duplicates_.Add(1);
      } else {
        updates.push_back(it.entry());
      }
    }
    if (DEUT_OMITTED("X1.wait_for_helpers") && it.Valid() && it.entry().kind == LogEntryKind::kLowWater) {
      ApplyLowWater(it.entry().timestamp);
    }
    unflushed.AddUpdates(updates.size());
    const size_t wanted = superseded_.MoveNeededToFront(std::span(updates));
    DEUT_DCHECK(wanted <= updates.size());
    DEUT_RETURN_IF_ERROR(ApplyRun(std::span(updates).first(wanted), &bytes));
    applied_.Add(updates.size() - wanted);  // S3: they count as applied with the updates that supersede them
    if (!it.Valid() || IsUpdate(it.entry())) continue;
    if (it.entry().position > applied) {
      DEUT_RETURN_IF_ERROR(ApplyEntry(it.entry()));
    } else if (it.entry().kind != LogEntryKind::kLowWater) {
      duplicates_.Add(1);
    }
    it.Next();
  }
  return Status::Ok();
}

Status RecordOperations::ApplyRun(std::span<const LogEntryView> updates, std::atomic<size_t>* bytes) {
  if (updates.size() < kUpdatesToShare) return ApplyUpdates(updates, bytes);
  std::atomic<bool> failed{false};
  Status failure;  // written only by the thread that was first to set `failed`
  const auto piece = [&](size_t number) {
    if (failed.load(std::memory_order_relaxed)) return;
    const size_t from = number * kUpdatesPerPiece;
    DEUT_POINT("record_ops.apply.piece");
    Status status = ApplyUpdates(updates.subspan(from, std::min(kUpdatesPerPiece, updates.size() - from)), bytes);
    if (!status.ok() && !failed.exchange(true, std::memory_order_acq_rel)) failure = std::move(status);
  };
  const size_t pieces = (updates.size() + kUpdatesPerPiece - 1) / kUpdatesPerPiece;
  if (!team_.TryRun(pieces, piece)) return ApplyUpdates(updates, bytes);
  // All helpers have left their pieces, so the failure of any of them is here.
  DEUT_DCHECK(failed.load(std::memory_order_relaxed) == !failure.ok());
  return failure;
}

Status RecordOperations::ApplyUpdates(std::span<const LogEntryView> updates, std::atomic<size_t>* bytes) {
  while (!updates.empty()) {
    size_t count = 0, taken = 0;
    for (; count < std::min(updates.size(), kMaxUpdatesPerGroup) && taken < kBytesPerBudgetCheck; ++count) {
      taken += updates[count].key.size() + updates[count].value.size();
    }
    // A check of the memory budget sums over all tables. So it is done once for every kBytesPerBudgetCheck of the
    // batch's payload, by the thread that passes the mark. Between two checks memory grows by little more than that;
    // the part of the budget that applying leaves free covers it.
    const size_t before = bytes->fetch_add(taken, std::memory_order_relaxed);
    if (before / kBytesPerBudgetCheck != (before + taken) / kBytesPerBudgetCheck) {
      evictor_.WakeIfOverHighMark();
      evictor_.WaitForMemory(PageEvictor::Purpose::kToApply);
    }
    DEUT_RETURN_IF_ERROR(ApplyGroup(updates.first(count)));
    updates = updates.subspan(count);
  }
  return Status::Ok();
}

Status RecordOperations::ApplyGroup(std::span<const LogEntryView> updates) {
  while (!updates.empty()) {
    const auto other = [&](const LogEntryView& update) { return update.table != updates.front().table; };
    const size_t of_table = static_cast<size_t>(std::ranges::find_if(updates, other) - updates.begin());
    WaitingUpdates waiting;
    DEUT_RETURN_IF_ERROR(ApplyWithoutWaiting(updates.first(of_table), &waiting));
    DEUT_DCHECK(waiting.size() <= of_table);
    // A single update loads its page itself.
    if (waiting.size() > 1) LoadPagesOf(waiting);
    for (const LogEntryView* update : waiting) DEUT_RETURN_IF_ERROR(ApplyEntry(*update));
    updates = updates.subspan(of_table);
  }
  return Status::Ok();
}

Status RecordOperations::ApplyWithoutWaiting(std::span<const LogEntryView> updates, WaitingUpdates* waiting) {
  DEUT_DCHECK(!updates.empty() && updates.size() <= kMaxUpdatesPerGroup);
  DEUT_DCHECK(updates.front().table == updates.back().table);
  const ReclamationDomain::Guard guard(trees_.domain());
  BwTree* const tree = trees_.registry().FindTree(updates.front().table);
  if (tree == nullptr) {
    for (const LogEntryView& update : updates) waiting->push_back(&update);
    return Status::Ok();
  }
  std::array<std::string_view, kMaxUpdatesPerGroup> keys;
  std::array<BwTree::LeafHint, kMaxUpdatesPerGroup> hints;
  for (size_t i = 0; i < updates.size(); ++i) keys[i] = updates[i].key;
  tree->FindLeaves(std::span(keys).first(updates.size()), hints.data());
  for (size_t i = 0; i < updates.size(); ++i) tree->PrefetchRoom(hints[i]);
  size_t applied = 0;
  size_t duplicates = 0;
  for (size_t i = 0; i < updates.size(); ++i) {
    const LogEntryView& entry = updates[i];
    DEUT_ASSIGN_OR_RETURN(const BwTree::Outcome outcome,
                          entry.kind == LogEntryKind::kPut
                              ? tree->Put(entry.key, entry.value, entry.version(), hints[i])
                              : tree->Delete(entry.key, entry.version(), hints[i]));
    if (outcome == BwTree::Outcome::kNotLoaded || outcome == BwTree::Outcome::kGateClosed) {
      waiting->push_back(&entry);
    } else {
      ++(outcome == BwTree::Outcome::kApplied ? applied : duplicates);
    }
  }
  applied_.Add(applied);
  duplicates_.Add(duplicates);
  return Status::Ok();
}

// The updates look for their pages again. So it does not matter if a page cannot be read, or leaves memory again.
void RecordOperations::LoadPagesOf(std::span<const LogEntryView* const> updates) {
  evictor_.WakeIfOverHighMark();
  evictor_.WaitForMemory(PageEvictor::Purpose::kToRead);
  std::vector<std::string> keys;
  keys.reserve(updates.size());
  for (const LogEntryView* update : updates) keys.emplace_back(update->key);
  (void)loader_.LoadAll(updates.front()->table, keys, Side::kAt);
}

Status RecordOperations::ApplyEntry(const LogEntryView& entry) {
  bool applied = false;
  switch (entry.kind) {
    case LogEntryKind::kPut:
    case LogEntryKind::kDelete: {
      DEUT_ASSIGN_OR_RETURN(applied, Update(entry));
      break;
    }
    case LogEntryKind::kCreateTable: {
      const std::optional<TableOptions> options = DecodeTableOptions(entry.value);
      if (!options) return DEUT_ERROR(kCorruption, "unknown options of table ", entry.table.value);
      DEUT_ASSIGN_OR_RETURN(applied, trees_.registry().Create(entry.table, entry.key, *options));
      break;
    }
    case LogEntryKind::kDropTable: {
      DEUT_ASSIGN_OR_RETURN(applied, trees_.registry().Drop(entry.table));
      break;
    }
    case LogEntryKind::kLowWater:
      ApplyLowWater(entry.timestamp);
      return Status::Ok();
  }
  (applied ? applied_ : duplicates_).Add(1);
  return Status::Ok();
}

// A page that cannot be read does not stop the log: it takes updates blindly, up to its limit. When an operator
// restores its file, the updates are still on it.
Result<bool> RecordOperations::Update(const LogEntryView& entry) {
  BwTree::LeafHint hint;
  bool was_damaged = false;  // the loader has already reported that the page cannot be read
  for (;;) {
    bool gate_closed = false;
    {
      const ReclamationDomain::Guard guard(trees_.domain());
      const TableRegistry::Found found = trees_.registry().Find(entry.table);
      if (found.state == TableRegistry::State::kUnknown) {
        return DEUT_ERROR(kCorruption, "the log entry at (", entry.position.commit.value, ", ", entry.position.sequence,
                          ") updates table ", entry.table.value, ", which was never created");
      }
      if (found.state == TableRegistry::State::kDropped) return false;
      BwTree& tree = *found.table->tree;
      DEUT_ASSIGN_OR_RETURN(const BwTree::Outcome outcome, entry.kind == LogEntryKind::kPut
                                                               ? tree.Put(entry.key, entry.value, entry.version(), hint)
                                                               : tree.Delete(entry.key, entry.version(), hint));
      gate_closed = outcome == BwTree::Outcome::kGateClosed;
      if (!gate_closed && outcome != BwTree::Outcome::kNotLoaded) return outcome == BwTree::Outcome::kApplied;
    }
    if (gate_closed) {
      DEUT_POINT("record_ops.update.held");
      runtime_.SleepUntil(runtime_.Now() + kGateClosedPause);
      continue;
    }
    // A page is far larger than the update. The check in ApplyUpdates counts only the update, so a load checks the
    // memory budget itself.
    evictor_.WakeIfOverHighMark();
    evictor_.WaitForMemory(PageEvictor::Purpose::kToRead);
    const Status loaded = loader_.Load(entry.table, Target(entry.key, Side::kAt), PageStay::kToWrite);
    const bool damaged = loaded == ErrorCode::kCorruption || loaded == ErrorCode::kIoError;
    if (!damaged || was_damaged) DEUT_RETURN_IF_ERROR(loaded);
    if (damaged) hint = BwTree::LeafHint::Unreadable();
    was_damaged = damaged;
  }
}

void RecordOperations::ApplyLowWater(Timestamp low_water) {
  const uint64_t seen = trees_.consolidation_timestamp().load(std::memory_order_relaxed);
  trees_.consolidation_timestamp().store(std::max(seen, low_water.value), std::memory_order_release);
}

}  // namespace deut::dc
