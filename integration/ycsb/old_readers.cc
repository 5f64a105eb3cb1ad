#include "integration/ycsb/old_readers.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/concat.h"
#include "integration/ycsb/record.h"

namespace deut::ycsb {
namespace {

bool IsOutage(const Status& status) {
  return status == ErrorCode::kUnavailable || status == ErrorCode::kDeadlineExceeded ||
         status == ErrorCode::kResourceExhausted;
}

}  // namespace

OldReaders::OldReaders(Client& client, TableId table, const BenchmarkOptions& options, uint32_t count, Duration hold)
    : client_(client),
      table_(table),
      options_(options),
      hold_(hold),
      random_(options.seed ^ 0x01dead5),
      readers_(count) {}

OldReaders::~OldReaders() { (void)Stop(); }

Result<std::string> OldReaders::Look(Reader* reader) {
  std::vector<std::string_view> keys(reader->keys.begin(), reader->keys.end());
  std::vector<std::optional<std::string>> values;
  DEUT_RETURN_IF_ERROR(reader->transaction->MultiGet(table_, keys, &values));
  std::string seen;
  for (const std::optional<std::string>& value : values) seen += value ? Concat("=", *value, "\n") : "-\n";
  ScanOptions scan;
  scan.low = KeyOf(reader->first);
  scan.limit_records = kScanned;
  DEUT_ASSIGN_OR_RETURN(const ScanResult result, reader->transaction->Scan(table_, scan));
  for (RecordBatch::Iterator it(result.records); it.Valid(); it.Next())
    seen += Concat(it.record().key, "=", it.record().value, "\n");
  return seen;
}

Status OldReaders::Begin(Reader* reader) {
  reader->transaction.reset();
  DEUT_ASSIGN_OR_RETURN(Transaction begun, client_.Begin());
  reader->transaction.emplace(std::move(begun));
  reader->begun = RealRuntime().Now();
  reader->first = random_.Below(options_.records);
  reader->keys.clear();
  for (uint64_t i = 0; i < kPoints; ++i) reader->keys.push_back(KeyOf(random_.Below(options_.records)));
  DEUT_ASSIGN_OR_RETURN(reader->seen, Look(reader));
  ++counters_.begun;
  return Status::Ok();
}

Status OldReaders::LookAgain(Reader* reader) {
  DEUT_ASSIGN_OR_RETURN(const std::string seen, Look(reader));
  if (seen != reader->seen) {
    size_t at = 0;
    while (at < seen.size() && at < reader->seen.size() && seen[at] == reader->seen[at]) ++at;
    return DEUT_ERROR(kCorruption, "a transaction of timestamp ", reader->transaction->timestamp().value,
                      " sees something else than before, at byte ", at, " of what it reads: first ",
                      reader->seen.substr(at, 60), ", now ", seen.substr(at, 60));
  }
  ++counters_.looks;
  const double held = std::chrono::duration<double>(RealRuntime().Now() - reader->begun).count();
  counters_.longest_held = std::max(counters_.longest_held, held);
  return Status::Ok();
}

Status OldReaders::Start() {
  for (size_t i = 0; i < readers_.size(); ++i) {
    // An undecided earlier writer causes a conflict that soon disappears, so the reader tries again.
    Status begun;
    do {
      begun = Begin(&readers_[i]);
    } while (begun == ErrorCode::kAborted);
    DEUT_RETURN_IF_ERROR(begun);
    readers_[i].hold = hold_ * static_cast<int64_t>(i + 1) / static_cast<int64_t>(readers_.size());
  }
  thread_ = RealRuntime().StartThread("old-readers", [this] { Run(); });
  return Status::Ok();
}

void OldReaders::Run() {
  for (bool last = false; !last && failure_.ok();) {
    RealRuntime().Wait(stop_, 0, RealRuntime().Now() + kPause);
    last = stop_.load(std::memory_order_seq_cst) != 0;
    for (Reader& reader : readers_) {
      Status status;
      if (reader.transaction) status = LookAgain(&reader);
      const bool over = hold_ > Duration{0} && RealRuntime().Now() - reader.begun >= reader.hold;
      if (status.ok() && reader.transaction && !over) continue;
      if (status == ErrorCode::kAborted) {
        ++counters_.aborted;
      } else if (!status.ok() && !(options_.tolerate_unavailable && IsOutage(status))) {
        failure_ = status;
        break;
      }
      if (last) continue;
      const Status begun = Begin(&reader);
      reader.hold = hold_;
      if (begun.ok()) continue;
      reader.transaction.reset();
      if (begun == ErrorCode::kAborted || (options_.tolerate_unavailable && IsOutage(begun))) continue;
      failure_ = begun;
      break;
    }
  }
}

Status OldReaders::Stop() {
  if (thread_ == nullptr) return failure_;
  stop_.store(1, std::memory_order_seq_cst);
  RealRuntime().WakeAll(stop_);
  thread_->Join();
  thread_.reset();
  readers_.clear();
  return failure_;
}

}  // namespace deut::ycsb
