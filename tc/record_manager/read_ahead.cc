#include "tc/record_manager/read_ahead.h"

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/remember_read.h"

namespace deut::tc {
namespace {

// The largest buffer of an answer that is kept for the next one.
constexpr size_t kKeptBytes = 4 << 10;

bool ReadsPoint(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kGet:
    case OperationKind::kUpdate:
    case OperationKind::kAdd:
    case OperationKind::kMin:
    case OperationKind::kMax:
    case OperationKind::kCompareAndSet:
      return true;
    case OperationKind::kInsert:
      return operation.stamp != Stamp::kKey;  // else the key is not known yet
    case OperationKind::kPut:
    case OperationKind::kRemove:
    case OperationKind::kScan:
    case OperationKind::kRemoveRange:
      return false;
  }
  return false;
}

}  // namespace

ReadAhead::~ReadAhead() { (void)Finish(engine_.runtime.Now()); }

bool ReadAhead::Begin() {
  if (reader_) return true;
  if (engine_.spilled != nullptr) spills_ = engine_.spilled->spills().load(std::memory_order_seq_cst);
  const Result<ActiveTransactions::Begun> begun = engine_.active.Begin(engine_.runtime.Now());
  if (!begun.ok()) return false;
  reader_ = *begun;
  return true;
}

void ReadAhead::End() {
  if (reader_) engine_.active.End(reader_->slot);
  reader_.reset();
  reads_ = 0;
  scans_.clear();
  submitted_.clear();
}

bool ReadAhead::RaiseAndCheckAbsent(TableId table, std::string_view key) {
  const uint64_t hash = RecordTable::Hash(table, key);
  ReclamationDomain::Guard guard(engine_.domain);
  RecordEntry* entry = engine_.records.Find(hash, table, key);
  // This view sees every version. If any transaction that begins later finds a version there, it does not ask the DC.
  const ReaderView anybody{.timestamp = Timestamp(UINT64_MAX)};
  if (entry != nullptr && FindVisible(entry->word.Load().head, anybody).kind != Visible::Kind::kNothing) return false;
  if (!Begin()) return false;
  for (;;) {
    RecordTable::MissedLookup absence;
    entry = engine_.records.Find(hash, table, key, &absence);
    if (entry == nullptr) {
      entry = RememberRead(engine_, absence, hash, table, key, reader_->timestamp, DEUT_OMITTED("S7.ahead_raises"));
    }
    if (entry == nullptr) return true;
    const HeadWord::Value word =
        DEUT_OMITTED("S7.ahead_raises") ? entry->word.Load() : RecordTable::RaiseLastRead(*entry, reader_->timestamp);
    if (word.dead()) continue;
    return FindVisible(word.head, {.timestamp = reader_->timestamp}).kind == Visible::Kind::kNothing;
  }
}

bool ReadAhead::Add(const Operation& operation) {
  DEUT_DCHECK(submitted_.empty());
  // An answer that is not kept would be asked for again.
  if (engine_.read_cache == nullptr || engine_.read_cache->budget_bytes() == 0) return false;
  if (reads_ == kMaxReads || !ReadsPoint(operation)) return false;
  if (operation.key.empty() || operation.key.size() > kMaxKeyBytes) return false;
  ReclamationDomain::Guard guard(engine_.domain);  // keeps the table, though no transaction has begun yet
  const TableState* const table = engine_.catalogue.FindAlsoDropped(operation.table);
  if (table == nullptr || !table->open()) return false;
  // Checked before the look, so that nothing is raised in vain. Checked again after it, because a version that has
  // left its chain for a run before the look is in a run now (S9).
  const auto may_ask = [&] {
    return (engine_.spilled == nullptr || engine_.spilled->empty()) && DcKnows(engine_, *table);
  };
  if (!may_ask() || !RaiseAndCheckAbsent(operation.table, operation.key) || !may_ask()) return false;
  if (reads_ == requests_.size()) requests_.emplace_back();
  DataRequest& request = requests_[reads_++];
  request.kind = DataRequest::Kind::kRead;
  request.table = operation.table;
  request.key = operation.key;
  return true;
}

std::unique_ptr<PrefetchedScan> ReadAhead::BeginScan(const TransactionOptions& options,
                                                     absl::Span<const Operation> operations) {
  if (scans_.size() == kMaxScans) return nullptr;
  std::unique_ptr<PrefetchedScan> begun = PrefetchedScan::TryBegin(engine_, options, operations);
  if (begun != nullptr) scans_.push_back(begun.get());
  return begun;
}

bool ReadAhead::Start() {
  DEUT_DCHECK(submitted_.empty());
  for (size_t i = 0; i < reads_; ++i) submitted_.push_back(&requests_[i]);
  for (PrefetchedScan* const scan : scans_) submitted_.push_back(scan->request());
  if (!submitted_.empty() && engine_.dc.TrySubmitReads(absl::MakeSpan(submitted_))) {
    if (reads_ != 0) engine_.counters.dc_reads.Add(reads_);
    return true;
  }
  for (PrefetchedScan* const scan : scans_) scan->GiveUp();
  End();
  return false;
}

bool ReadAhead::Keep(DataRequest* request, const SpillWatch& spilled) {
  // S7: this reader counts in the low-water until the answers are kept.
  DEUT_DCHECK(engine_.active.low_water() <= reader_->timestamp);
  const RecordBatch::Iterator it(request->answer);
  // The transaction that reads this key will ask for itself, and report the broken invariant.
  if (it.Valid() && !CheckVisible(it.record(), reader_->timestamp).ok()) return false;
  const std::optional<std::string_view> value = it.Valid() ? std::optional(it.record().value) : std::nullopt;
  const uint64_t hash = RecordTable::Hash(request->table, request->key);
  const bool full = engine_.read_cache->Fill(hash, request->table, request->key, value, spilled);
  if (request->answer.bytes().size() > kKeptBytes) request->answer = RecordBatch();
  return full;
}

bool ReadAhead::Finish(Deadline deadline) {
  if (submitted_.empty()) {
    End();
    return true;
  }
  engine_.dc.CollectReads(absl::MakeSpan(submitted_), deadline);
  if (DEUT_OMITTED("S7.ahead_in_low_water") && reader_) engine_.active.End(reader_->slot);
  DEUT_POINT("read_ahead.before_fill");
  const SpillWatch spilled =
      engine_.spilled == nullptr ? SpillWatch{} : SpillWatch{&engine_.spilled->spills(), spills_};
  bool full = false, all = true;
  for (size_t i = 0; i < submitted_.size(); ++i) {
    all = all && submitted_[i]->status != ErrorCode::kDeadlineExceeded;
    if (i < reads_ && submitted_[i]->status.ok()) full = Keep(submitted_[i], spilled) || full;
  }
  for (PrefetchedScan* const scan : scans_) scan->OnRequestReturned();
  if (full) engine_.collector.MakeRoom();
  if (DEUT_OMITTED("S7.ahead_in_low_water")) reader_.reset();
  End();
  return all;
}

}  // namespace deut::tc
