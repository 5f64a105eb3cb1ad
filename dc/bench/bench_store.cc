#include "dc/bench/bench_store.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"

namespace deut::dc::bench {
namespace {

constexpr size_t kBatchBytes = 128 << 10;
constexpr size_t kAnswerBytes = 64 << 10;

}  // namespace

// Writes the log, one entry at a time; a batch is applied when it is full.
class BenchStore::BatchMaker {
 public:
  BatchMaker(BenchStore& store, BenchThread* thread) : store_(store), thread_(thread) {
    batch_.entries.reserve(kBatchBytes + 4096);
  }
  ~BatchMaker() { Apply(); }
  BatchMaker(const BatchMaker&) = delete;
  BatchMaker& operator=(const BatchMaker&) = delete;

  void Put(uint64_t record) {
    const BenchKey key(record);
    const BenchValue value(record, now_);
    Add(LogEntryKind::kPut, key, value);
  }
  void Delete(uint64_t record) { Add(LogEntryKind::kDelete, BenchKey(record), {}); }
  void CreateTable() { Add(LogEntryKind::kCreateTable, "bench", {}); }

 private:
  void Add(LogEntryKind kind, std::string_view key, std::string_view value) {
    LogEntryView entry;
    entry.kind = kind;
    entry.position = Position{Lsn(store_.lsn_.fetch_add(key.size() + value.size(), std::memory_order_relaxed) + 1), 1};
    entry.timestamp = now_;
    entry.table = kBenchTable;
    entry.key = key;
    entry.value = value;
    batch_.Append(entry);
    ++thread_->work.operations;
    thread_->work.record_bytes += key.size() + value.size();
    if (batch_.entries.size() >= kBatchBytes) Apply();
  }
  void Apply() {
    const MonotonicTime begin = RealRuntime().Now();
    const Status status = store_.operations().ApplyBatch(batch_, Position());
    thread_->work.busy += RealRuntime().Now() - begin;
    DEUT_CHECK(status.ok());
    batch_.entries.clear();
    now_ = store_.NewTime();
  }

  BenchStore& store_;
  BenchThread* const thread_;
  LogBatch batch_;
  Timestamp now_ = store_.NewTime();
};

BenchStore::BenchStore(Storage& storage, const std::string& directory, uint64_t memory_bytes,
                       const ChecksumTable& checksums, uint64_t records)
    : checksums_(checksums), records_(records) {
  RecordStoreOptions options;
  options.memory_bytes = memory_bytes;
  options.max_pages = uint32_t{1} << 24;
  const RecordStore::Location home{storage, directory, DcId(1), DcIncarnation(1)};
  auto opened = RecordStore::Open(RealRuntime(), home, options);
  DEUT_CHECK(opened.ok());
  store_ = std::move(*opened);
  lsn_ = store_->recovered().commit.value;
  // Later than every timestamp of an earlier incarnation: a full batch is more than half of kBatchBytes of log, and
  // other batches are few.
  time_ = static_cast<uint32_t>(lsn_.load() / kBatchBytes * 4 + (lsn_.load() != 0 ? 1000 : 0));
  BenchThread thread(1);
  BatchMaker(*this, &thread).CreateTable();
}

void BenchStore::Put(std::span<const uint32_t> records, BenchThread* thread) {
  BatchMaker maker(*this, thread);
  for (const uint32_t record : records) maker.Put(record);
}

void BenchStore::PutRandom(BenchThread* thread) {
  BatchMaker maker(*this, thread);
  for (size_t i = 0; i < kBatchBytes / 160; ++i) maker.Put(thread->random.Below(records_));
}

void BenchStore::Delete(std::span<const uint32_t> records) {
  BenchThread thread(1);
  BatchMaker maker(*this, &thread);
  for (const uint32_t record : records) maker.Delete(record);
}

void BenchStore::Lookup(uint64_t record, BenchThread* thread) {
  RecordBatch& answer = thread->answer;
  answer.Clear();
  bool missing = false;
  Status status = operations().TryRead(kBenchTable, BenchKey(record), &answer, &missing);
  if (missing) status = operations().Read(kBenchTable, BenchKey(record), &answer);
  DEUT_CHECK(status.ok() && answer.size() == 1);
  thread->work.misses += missing ? 1 : 0;
  DEUT_CHECK(SumOfBytes(answer.bytes()) == ChecksumOfRecord(record));
  ++thread->work.operations;
  ++thread->work.records;
  thread->work.record_bytes += answer.bytes().size();
}

void BenchStore::LookupSeveral(BenchThread* thread) {
  constexpr size_t kReads = std::tuple_size_v<decltype(thread->answers)>;
  std::array<uint64_t, kReads> records;
  for (uint64_t& record : records) record = thread->random.Below(records_);
  std::vector<BenchKey> keys(records.begin(), records.end());
  std::array<RecordOperations::PointRead, kReads> reads;
  for (size_t i = 0; i < kReads; ++i) {
    thread->answers[i].Clear();
    reads[i].table = kBenchTable;
    reads[i].key = keys[i];
    reads[i].answer = &thread->answers[i];
  }
  operations().TryReadSeveral(reads);
  for (size_t i = 0; i < kReads; ++i) {
    DEUT_CHECK(reads[i].status.ok() && !reads[i].missing && reads[i].answer->size() == 1);
    DEUT_CHECK(SumOfBytes(reads[i].answer->bytes()) == ChecksumOfRecord(records[i]));
    thread->work.record_bytes += reads[i].answer->bytes().size();
  }
  thread->work.operations += kReads;
  thread->work.records += kReads;
}

void BenchStore::Scan(uint64_t first, uint64_t count, BenchThread* thread) {
  checksums_.Prefetch(first);
  checksums_.Prefetch(std::min(first + count, records_));
  ScanCursor cursor;
  cursor.low.assign(std::string_view(BenchKey(first)));
  RecordBatch& answer = thread->answer;
  uint64_t got = 0;
  uint64_t checksum = 0;
  while (got < count && !cursor.complete) {
    answer.Clear();
    ScanBudget budget;
    budget.records = count - got;
    budget.bytes = kAnswerBytes;
    DEUT_CHECK(operations().Scan(kBenchTable, Direction::kAscending, &cursor, &budget, UINT64_MAX, &answer).ok());
    got += answer.size();
    checksum += SumOfBytes(answer.bytes());
    thread->work.record_bytes += answer.bytes().size();
  }
  const uint64_t end = std::min(first + count, records_);
  DEUT_CHECK(got == end - first && checksum == checksums_.Of(first, end));
  ++thread->work.operations;
  thread->work.records += got;
}

void BenchStore::CheckAll(uint64_t records) {
  ScanCursor cursor;
  RecordBatch answer;
  uint64_t found = 0;
  while (!cursor.complete) {
    answer.Clear();
    ScanBudget budget;
    budget.bytes = kAnswerBytes;
    DEUT_CHECK(operations().Scan(kBenchTable, Direction::kAscending, &cursor, &budget, UINT64_MAX, &answer).ok());
    for (RecordBatch::Iterator it(answer); it.Valid(); it.Next(), ++found) {
      DEUT_CHECK(it.record().key.size() >= BenchKey::kDigits);
      const uint64_t record = BenchKey::RecordOf(it.record().key);
      DEUT_CHECK(std::string_view(BenchKey(record)) == it.record().key);
      DEUT_CHECK(std::string_view(BenchValue(record, it.record().version.timestamp)) == it.record().value);
    }
  }
  DEUT_CHECK(found == records);
}

uint64_t BenchStore::Counter(std::string_view name) {
  std::vector<CounterValue> counters;
  store_->AppendCounters(&counters);
  const auto found =
      std::find_if(counters.begin(), counters.end(), [name](const CounterValue& c) { return c.name == name; });
  DEUT_CHECK(found != counters.end());
  return found->value;
}

void BenchStore::Checkpoint() {
  DEUT_CHECK(store_->Checkpoint([this] { return Position{Lsn(log_bytes()), 1}; }).ok());
}

}  // namespace deut::dc::bench
