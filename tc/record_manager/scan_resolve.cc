#include "tc/record_manager/scan_resolve.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/logged_value.h"
#include "tc/record_manager/spilled_value.h"

namespace deut::tc {
namespace {

// The bytes of a version that are prefetched before it is looked at: all of it if the value is short.
constexpr size_t kCacheLine = 64;
constexpr size_t kFetchedOfVersion = 3 * kCacheLine;

}  // namespace

// Does each step for all keys before the next, so that their cache misses overlap. An entry may be sealed, and
// another made, before its chain is looked at. That does no harm: the version that the reader sees was in the first
// one's chain, or is at the DC or in a spilled run by then (R5, S5), as after a look-up at that time.
void ScanResolve::FetchChains(absl::Span<GatheredKey> keys, Entries* entries) {
  for (GatheredKey& gathered : keys) {
    gathered.hash = RecordTable::Hash(table_.id(), gathered.key);
    call_.engine.records.Prefetch(gathered.hash);
  }
  for (const GatheredKey& gathered : keys) call_.engine.records.PrefetchFirst(gathered.hash);
  std::array<const RecordVersion*, kFetchedAtOnce> heads{};
  for (size_t i = 0; i < keys.size(); ++i) {
    RecordEntry* const entry = call_.engine.records.Find(keys[i].hash, table_.id(), keys[i].key);
    (*entries)[i] = entry;
    if (entry == nullptr) continue;
    heads[i] = entry->word.Load().head;
    if (heads[i] == nullptr) continue;
    const char* const head = reinterpret_cast<const char*>(heads[i]);
    for (size_t at = 0; at < kFetchedOfVersion; at += kCacheLine) __builtin_prefetch(head + at);
  }
  for (const RecordVersion* const head : heads) {
    if (head != nullptr) __builtin_prefetch(head->transaction);
  }
}

size_t ScanResolve::ResolveOne(const RecordEntry* entry, GatheredKey* gathered) {
  gathered->kind = GatheredKey::Kind::kAskDc;
  Visible visible = entry == nullptr ? Visible{} : FindVisible(entry->word.Load().head, view_);
  // An earlier writer that is uncommitted now published its key after this scan's look. (Otherwise the stretch would
  // have ended before the key, or the writer would have been a conflict.) So the writer's own check meets this scan's
  // last_read, and it aborts. The reader sees the version below.
  while (visible.kind == Visible::Kind::kConflict) {
    visible = FindVisible(visible.version->older.load(std::memory_order_seq_cst), view_);
  }
  if (visible.kind == Visible::Kind::kNothing) return 0;
  const RecordVersion& version = *visible.version;
  DEUT_DCHECK(version.transaction == call_.txn.record_ || version.version().timestamp < view_.timestamp);
  gathered->kind = version.tombstone ? GatheredKey::Kind::kTombstone : GatheredKey::Kind::kValue;
  gathered->version = version.version();
  if (version.paged_out) {
    gathered->kind = GatheredKey::Kind::kInLog;
    gathered->place = version.place;
    gathered->value_bytes = version.value_bytes;
  } else {
    gathered->value = gathered_.values.Copy(version.value());
  }
  // S7: a copy holds the record that the DC has now, so it is newer than the DC's earlier answer.
  if (version.of_dc() && DEUT_STEP("S7.newest")) gathered->version = Version{kMaxTimestamp, 0};
  // D1: the scan depends on this commit, and on no later one of the key. (A version that has left the chain was
  // durable when it was shipped.)
  if (version.transaction != call_.txn.record_ && DEUT_STEP("D1.depend_on_scanned"))
    call_.txn.DependOn(version.transaction->commit_lsn());
  return RecordBatch::kHeaderBytes + gathered->key.size() + version.value_bytes;
}

Status ScanResolve::Resolve(size_t begin, size_t* piece) {
  std::vector<GatheredKey>& keys = gathered_.keys;
  size_t bytes = 0;
  size_t end = *piece;
  DEUT_DCHECK(begin == gathered_.next && begin < end && end <= keys.size());
  {
    ReclamationDomain::Guard guard(call_.engine.domain);
    Entries entries;
    for (size_t i = begin; i < end; ++i) {
      const size_t at = (i - begin) % kFetchedAtOnce;
      if (at == 0) FetchChains(absl::MakeSpan(keys).subspan(i, std::min(kFetchedAtOnce, end - i)), &entries);
      DEUT_POINT("scan.resolving");
      if (bytes >= call_.room.limit_bytes()) end = *piece = i + 1;
      bytes += ResolveOne(entries[at], &keys[i]);
    }
  }
  DEUT_RETURN_IF_ERROR(FindSpilled(begin, piece));
  DEUT_DCHECK(begin < *piece && *piece <= end);
  end = *piece;
  const absl::Span<GatheredKey> resolved(keys.data() + begin, end - begin);
  DEUT_RETURN_IF_ERROR(ReadBack(resolved));
  return ReaskDc(resolved);
}

Status ScanResolve::FindSpilled(size_t begin, size_t* piece) {
  if (NothingSpilled(call_.engine)) return Status::Ok();
  SpillReader runs = LookAtSpilled(call_.engine);
  if (runs.empty()) return Status::Ok();
  size_t bytes = 0;
  for (size_t i = begin; i < *piece; ++i) {
    GatheredKey& gathered = gathered_.keys[i];
    if (gathered.kind != GatheredKey::Kind::kAskDc) continue;
    DEUT_ASSIGN_OR_RETURN(const std::optional<SpilledVersion> found,
                          runs.Find(table_.id(), gathered.key, view_.timestamp));
    if (!found) continue;
    call_.engine.counters.spilled_reads.fetch_add(1, std::memory_order_relaxed);
    gathered.kind = found->tombstone ? GatheredKey::Kind::kTombstone : GatheredKey::Kind::kInLog;
    gathered.version = found->version();
    gathered.place = found->place;
    gathered.value_bytes = found->value_bytes;
    bytes += found->value_bytes;
    if (bytes >= call_.room.limit_bytes()) *piece = i + 1;
  }
  return Status::Ok();
}

Status ScanResolve::ReadBack(absl::Span<GatheredKey> keys) {
  absl::InlinedVector<GatheredKey*, 16> in_log;
  for (GatheredKey& gathered : keys) {
    if (gathered.kind == GatheredKey::Kind::kInLog) in_log.push_back(&gathered);
  }
  std::ranges::sort(in_log, {}, &GatheredKey::place);
  std::string value;
  for (GatheredKey* const gathered : in_log) {
    const LoggedPut put{.place = gathered->place,
                        .table = table_.id(),
                        .sequence = gathered->version.sequence,
                        .value_bytes = gathered->value_bytes,
                        .key = gathered->key};
    const Status read = ReadLogged(call_.engine, put, &value);
    if (!read.ok() && read != ErrorCode::kNotFound) return read;
    gathered->value = gathered_.values.Copy(value);
    gathered->kind = read.ok() ? GatheredKey::Kind::kValue : GatheredKey::Kind::kAskDc;  // S2: the DC has it
  }
  return Status::Ok();
}

Status ScanResolve::ReaskDc(absl::Span<GatheredKey> keys) {
  const auto ask = static_cast<size_t>(std::ranges::count(keys, GatheredKey::Kind::kAskDc, &GatheredKey::kind));
  if (ask == 0 || DEUT_OMITTED("S5.ask_again") || !DcKnows(call_.engine, table_)) return Status::Ok();
  call_.engine.counters.keys_reasked.fetch_add(ask, std::memory_order_relaxed);
  std::vector<DataRequest> reasks(ask);
  std::vector<DataRequest*> requests;
  for (GatheredKey& gathered : keys) {
    if (gathered.kind != GatheredKey::Kind::kAskDc) continue;
    DataRequest& request = reasks[requests.size()];
    request.table = table_.id();
    request.key = gathered.key;
    gathered.reask = &request;
    requests.push_back(&request);
  }
  DEUT_RETURN_IF_ERROR(call_.engine.dc.Read(absl::MakeSpan(requests), call_.deadline));
  for (GatheredKey& gathered : keys) {
    if (gathered.reask == nullptr || gathered.kind != GatheredKey::Kind::kAskDc) continue;
    DEUT_RETURN_IF_ERROR(gathered.reask->status);
    gathered.kind = GatheredKey::Kind::kTombstone;  // the DC has nothing
    gathered.version = Version{kMaxTimestamp, 0};   // newer than the DC's first answer
    for (RecordBatch::Iterator it(gathered.reask->answer); it.Valid(); it.Next()) {
      DEUT_RETURN_IF_ERROR(CheckVisible(it.record(), call_.txn.timestamp()));
      gathered.kind = GatheredKey::Kind::kValue;
      gathered.value = gathered_.values.Copy(it.record().value);
    }
    gathered.reask = nullptr;
  }
  return Status::Ok();
}

}  // namespace deut::tc
