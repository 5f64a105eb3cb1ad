#include "tc/record_manager/scan_gather.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/record_manager/become_writer.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/spilled_value.h"

namespace deut::tc {
namespace {

bool Inside(std::string_view key, std::string_view low, std::string_view high) {
  return key >= low && (high.empty() || key < high);
}

// Returns the smaller of two upper bounds; an empty one is above every key.
std::string_view LowerBound(std::string_view a, std::string_view b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return std::min(a, b);
}

}  // namespace

ScanGather::ScanGather(Engine& engine, Transaction& txn, Direction direction, bool for_update)
    : engine_(engine), txn_(txn), direction_(direction), for_update_(for_update), wait_(engine, txn.timestamp_) {}

Status ScanGather::GatherNext(const TableState& table, ResumableScan* scan, const BatchRoom& room, bool* blocked) {
  ScanCursor& cursor = scan->cursor;
  const std::string_view from = cursor.gathered ? cursor.bound : cursor.position();
  DEUT_RETURN_IF_ERROR(Next(table, ascending() ? from : cursor.low, ascending() ? cursor.high : from,
                            scan->MaxGatheredKeys(room), &cursor.bound, &scan->gathered, blocked));
  cursor.gathered = cursor.gathered || blocked == nullptr || !*blocked;
  return Status::Ok();
}

Status ScanGather::Next(const TableState& table, std::string_view low, std::string_view high, size_t most_keys,
                        std::string* bound, GatheredKeys* gathered, bool* blocked) {
  most_keys_ = most_keys;
  near_end_ = ascending() ? low : high;
  if (near_end_.data() == bound->data()) {
    near_end_kept_.assign(near_end_);
    near_end_ = near_end_kept_;
  }
  const size_t first = gathered->keys.size();
  for (bool done = false;;) {
    DEUT_RETURN_IF_ERROR(Look(table, low, high, bound, gathered, blocked, &done));
    if (done) {
      if (blocked != nullptr && *blocked) return Status::Ok();
      DEUT_RETURN_IF_ERROR(GatherSpilled(table, first, bound, gathered));
      // Every stretch takes the scan further, so no scan goes round for ever.
      DEUT_DCHECK(bound->empty() || (ascending() ? *bound > near_end_ : near_end_.empty() || *bound < near_end_));
      return Status::Ok();
    }
    wait_.Wait();
    if (DEUT_OMITTED("R9.look_again")) {
      bound->assign(ascending() ? high : low);  // as if everything were gathered
      return Status::Ok();
    }
  }
}

Status ScanGather::Look(const TableState& table, std::string_view low, std::string_view high, std::string* bound,
                        GatheredKeys* gathered, bool* blocked, bool* done) {
  ReclamationDomain::Guard guard(engine_.domain);
  Stretch stretch;
  for (bool sealed = true; sealed;) {
    const RangeMap& map = table.map();
    Range& range = map.at(ascending() ? map.IndexOf(low) : map.IndexBelow(high));
    range.Prefetch();
    stretch = {.low = std::max<std::string_view>(low, range.low()), .high = LowerBound(high, range.high())};
    DEUT_DCHECK(stretch.high.empty() || stretch.low < stretch.high);
    candidates_.clear();
    from_runs_.clear();
    pending_ = Pending{};
    DEUT_RETURN_IF_ERROR(RaiseAndGather(table, range, stretch, &sealed));
    if (sealed) table.FinishRangeChange();  // P: then the map has changed
  }
  if (pending_.writer != nullptr && !EndBeforePending(&stretch)) {
    if (blocked != nullptr && DEUT_STEP("R8.ahead_decides_nothing")) {
      *blocked = *done = true;
      return Status::Ok();
    }
    if (wait_.MayWaitFor(*pending_.writer)) return Status::Ok();
    return Conflict(engine_, AbortReason::kRangeWriter, txn_.timestamp_, table.id(),
                    pending_.at_once ? stretch.low : pending_.key, pending_.writer->timestamp());
  }
  const size_t before = gathered->keys.size();
  if (!candidates_.empty() || !from_runs_.empty()) MergeAndCut(&stretch, gathered);
  if (gathered->keys.size() != before) engine_.counters.gathered_keys.Add(gathered->keys.size() - before);
  bound->assign(ascending() ? stretch.high : stretch.low);
  *done = true;
  return Status::Ok();
}

Status ScanGather::RaiseAndGather(const TableState& table, Range& range, const Stretch& stretch, bool* sealed) {
  const bool raise = !txn_.snapshot();
  if (for_update_) DEUT_RETURN_IF_ERROR(BecomeWriter(engine_, txn_, table.id(), stretch.low));
  *sealed = for_update_ && !txn_.Post(range, DEUT_OMITTED("R3.post_first"));
  if (*sealed) return Status::Ok();
  DEUT_POINT("scan.before_raise");
  if (raise && DEUT_STEP("R2.raise") && DEUT_STEP("R2.raise_first")) {
    *sealed = !range.RaiseLastRead(txn_.timestamp_);
    if (*sealed) return Status::Ok();
    DEUT_DCHECK(range.last_read() >= txn_.timestamp_);
  }
  DEUT_POINT("scan.raised");
  // S8: postings first, runs second. A key that is no longer found as a posting was in a run before the walk came
  // there.
  const bool runs_first = DEUT_OMITTED("S8.postings_first");
  if (runs_first) GatherRuns(table, stretch);
  DEUT_POINT("scan.before_postings");
  range.ForEachPosting([&](TransactionRecord& record) { return GatherFrom(record, table.id(), stretch); });
  DEUT_POINT("scan.postings_walked");
  if (!runs_first && !pending_.at_once) GatherRuns(table, stretch);
  DEUT_POINT("scan.looked");
  if (raise && DEUT_OMITTED("R2.raise_first")) (void)range.RaiseLastRead(txn_.timestamp_);
  if (!for_update_ || DEUT_OMITTED("R3.check_last")) return Status::Ok();
  if (const Timestamp read = range.last_read(); read > txn_.timestamp_) {
    return Conflict(engine_, AbortReason::kRangeReadLater, txn_.timestamp_, table.id(), stretch.low, read);
  }
  if (const Timestamp read = table.last_read(); read > txn_.timestamp_ || !table.open()) {
    return Conflict(engine_, AbortReason::kTableReadLater, txn_.timestamp_, table.id(), stretch.low, read);
  }
  return Status::Ok();
}

bool ScanGather::GatherFrom(TransactionRecord& record, TableId table, const Stretch& stretch) {
  if (&record != txn_.record_) {
    // No other transaction has an equal timestamp, except for a snapshot, which may read below the very timestamp of
    // the oldest writer.
    if (record.timestamp() >= txn_.timestamp_ || record.collected()) return true;
    switch (record.status()) {
      case TransactionStatus::kAborted:
        return true;
      case TransactionStatus::kActive:
      case TransactionStatus::kCommitting:
        if (DEUT_STEP("R2.look")) FindPending(record, table, stretch);
        return !pending_.at_once;
      case TransactionStatus::kCommitted:
        break;
    }
  }
  // Without a write set the keys are in runs, or the DC has them (S8, S6).
  const WriteSet* const writes = record.write_set();
  if (writes != nullptr) GatherKeys(*writes, table, stretch);
  return true;
}

void ScanGather::GatherRuns(const TableState& table, const Stretch& stretch) {
  const CommittedRuns::Bounds bounds{.low = stretch.low,
                                     .high = stretch.high,
                                     .ascending = ascending(),
                                     .reader = txn_.timestamp_,
                                     .applied = engine_.collector.collected_through(),
                                     // One more than is kept shows that there is a cut.
                                     .most = most_keys_ + 1};
  table.runs().Gather(bounds, [&](std::string_view key, bool removed) {
    DEUT_DCHECK(Inside(key, stretch.low, stretch.high));
    DEUT_DCHECK(from_runs_.empty() || Before(from_runs_.back().key, key));
    from_runs_.push_back({.key = key, .may_be_removed = removed});
  });
}

Status ScanGather::GatherSpilled(const TableState& table, size_t first, std::string* bound, GatheredKeys* gathered) {
  if (NothingSpilled(engine_)) return Status::Ok();
  SpillReader runs = LookAtSpilled(engine_);
  if (runs.empty() || DEUT_OMITTED("S9.gather_spilled")) return Status::Ok();
  const SpillReader::Bounds bounds{.table = table.id(),
                                   .low = ascending() ? near_end_ : *bound,
                                   .high = ascending() ? *bound : near_end_,
                                   .ascending = ascending(),
                                   .reader = txn_.timestamp_,
                                   .applied = engine_.collector.collected_through(),
                                   // As for the runs in memory.
                                   .most = most_keys_ + 1};
  std::vector<GatheredKey>& keys = gathered->keys;
  const size_t before = keys.size();
  DEUT_RETURN_IF_ERROR(
      runs.Gather(bounds, [&](std::string_view key) { keys.emplace_back().key = gathered->texts.Copy(key); }));
  engine_.counters.gathered_keys.Add(keys.size() - before);
  // Sorts the keys of the stretch, which begin at `first`.
  const auto begin = keys.begin() + static_cast<ptrdiff_t>(first);
  std::ranges::sort(begin, keys.end(),
                    [this](const GatheredKey& a, const GatheredKey& b) { return Before(a.key, b.key); });
  const auto same = std::ranges::unique(begin, keys.end(), {}, &GatheredKey::key);
  keys.erase(same.begin(), same.end());
  if (keys.size() - first <= most_keys_) return Status::Ok();
  keys.resize(first + most_keys_ + 1);
  const std::string_view last = keys.back().key;
  *bound = ascending() ? KeyBehind(last) : std::string(last);
  return Status::Ok();
}

void ScanGather::FindPending(TransactionRecord& writer, TableId table, const Stretch& stretch) {
  if (engine_.conflicts.range_precision == RangePrecision::kRanges) {
    pending_ = Pending{.writer = &writer, .at_once = true};
    return;
  }
  bool any = false;
  // A key counts if it is published, installed or not, or declared (R11). A declared key is not checked against
  // last_read when it is written, so the writer's status decides, not the chain.
  const WriteSet* const writes = writer.write_set();
  if (writes != nullptr) {
    writes->ForEachIn(table, stretch.low, stretch.high, ascending(), 1, [&](const WriteSet::Key& key) {
      any = true;
      if (pending_.writer == nullptr || Before(key.key, pending_.key)) pending_ = {.writer = &writer, .key = key.key};
    });
  }
  if (!any) engine_.counters.writers_passed.fetch_add(1, std::memory_order_relaxed);
}

bool ScanGather::EndBeforePending(Stretch* stretch) {
  if (pending_.at_once) return false;
  if (DEUT_OMITTED("R8.end_before")) return true;
  if (ascending()) {
    if (stretch->low == pending_.key) return false;
    stretch->high = pending_.key;
  } else {
    key_behind_ = KeyBehind(pending_.key);
    if (stretch->high == key_behind_) return false;
    stretch->low = key_behind_;
  }
  engine_.counters.stretches_cut_by_pending_key.fetch_add(1, std::memory_order_relaxed);
  const auto outside = [&](const Candidate& c) { return !Inside(c.key, stretch->low, stretch->high); };
  std::erase_if(candidates_, outside);
  std::erase_if(from_runs_, outside);
  return true;
}

void ScanGather::GatherKeys(const WriteSet& writes, TableId table, const Stretch& stretch) {
  // One more than is kept shows that there is a cut.
  writes.ForEachIn(table, stretch.low, stretch.high, ascending(), most_keys_ + 1,
                   [&](const WriteSet::Key& key) { candidates_.push_back({.key = key.key}); });
}

void ScanGather::MergeAndCut(Stretch* stretch, GatheredKeys* gathered) {
  std::vector<GatheredKey>& keys = gathered->keys;
  std::sort(candidates_.begin(), candidates_.end(),
            [this](const Candidate& a, const Candidate& b) { return Before(a.key, b.key); });
  const size_t first = keys.size(), most = first + most_keys_ + 1;
  // The stretches follow each other in scan order, so the keys of all of them are in order.
  const auto first_follows = [&] {
    return first == 0 || keys.size() == first || Before(keys[first - 1].key, keys[first].key);
  };
  auto posted = candidates_.cbegin();
  auto folded = from_runs_.cbegin();
  while (posted != candidates_.cend() || folded != from_runs_.cend()) {
    const bool of_posting =
        folded == from_runs_.cend() || (posted != candidates_.cend() && Before(posted->key, folded->key));
    const Candidate& next = of_posting ? *posted++ : *folded++;
    if (keys.size() != first && keys.back().key == next.key) {
      keys.back().may_be_removed |= next.may_be_removed;
      continue;
    }
    if (keys.size() == most) break;
    GatheredKey& added = keys.emplace_back();
    added.key = gathered->texts.Copy(next.key);
    added.may_be_removed = next.may_be_removed;
  }
  DEUT_DCHECK(first_follows());
  if (keys.size() < most || DEUT_OMITTED("S8.end_behind_last")) return;
  // There may be more keys even if none is left here, because no source has given more than `most`.
  const std::string_view last = keys.back().key;
  if (ascending()) {
    key_behind_ = KeyBehind(last);
    stretch->high = key_behind_;
  } else {
    stretch->low = last;
  }
}

}  // namespace deut::tc
