// The part with a store that is larger than the disk: what a start, a checkpoint and the cleaner's choice cost that
// grows with the number of pages and segments.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "common/runtime/process_memory.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_store.h"
#include "dc/bench/sparse_store.h"
#include "dc/bench/sparse_tree.h"
#include "dc/store/record_store.h"
#include "protocol/log_batch.h"

namespace deut::dc::bench {
namespace {

// Every 16th segment is mostly dead, so that the cleaner's pass has segments to compare. That is too little for the
// cleaner to copy anything: it would find holes.
constexpr uint64_t kDeadEvery = 16;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double SecondsOf(const std::function<void()>& work) {
  const MonotonicTime begin = RealRuntime().Now();
  work();
  return Seconds(RealRuntime().Now() - begin);
}

[[noreturn]] void Fail(const Status& status) { FailStop(Concat("large store: ", status.ToString())); }

// The folder of a data component, removed at the beginning and at the end.
class Folder {
 public:
  explicit Folder(const BenchOptions& options)
      : storage_(std::move(*NewSystemStorage(IoKind::kAuto, RealRuntime()))),
        path_((options.directory.empty() ? temporary_.path() : options.directory) + "/large_store") {
    Remove();
  }
  ~Folder() { Remove(); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  Storage& storage() { return *storage_; }
  const std::string& path() const { return path_; }
  std::string pages() const { return path_ + "/pages"; }

 private:
  void Remove() {
    for (const std::string& folder : {pages(), path_}) {
      const auto names = storage_->List(folder);
      if (!names.ok()) continue;
      for (const std::string& name : *names) DEUT_CHECK(storage_->Remove(Concat(folder, "/", name)).ok());
      DEUT_CHECK(storage_->Remove(folder).ok());
    }
  }

  const testing::TempDir temporary_;
  const std::unique_ptr<Storage> storage_;
  const std::string path_;
};

// One incarnation.
class LargeStore {
 public:
  LargeStore(Folder& folder, const BenchOptions& options) {
    RecordStoreOptions store;
    store.memory_bytes = 0;
    store.store.max_open_files = options.open_files;
    store.cleaner.interval = Duration();  // the caller cleans
    store.scrubber.bytes_per_second = 0;  // it would report the holes
    const RecordStore::Location home{.storage = folder.storage(),
                                     .directory = folder.pages(),
                                     .dc = kSparseDc,
                                     .incarnation = DcIncarnation(1),  // that of dc_state
                                     .oldest_required = CheckpointNumber(1)};
    auto opened = RecordStore::Open(RealRuntime(), home, store);
    if (!opened.ok()) Fail(opened.status());
    store_ = std::move(*opened);
    lsn_ = store_->recovered().commit.value;
  }

  void Read(uint64_t record) {
    RecordBatch answer;
    const Status status = store_->operations().Read(kBenchTable, SparseKey(record), &answer);
    if (!status.ok()) Fail(status);
    DEUT_CHECK(answer.size() == 1);
    const RecordBatch::Iterator it(answer);
    const BenchValue value(record, it.record().version.timestamp);
    DEUT_CHECK(it.record().value == std::string_view(value));
  }
  // Updates these records, each with a value of its own version.
  void Put(const std::vector<uint64_t>& records) {
    LogBatch batch;
    const Timestamp now = BenchTimestamp(static_cast<uint32_t>(lsn_ + 1));
    for (const uint64_t record : records) {
      const std::string key = SparseKey(record);
      const BenchValue value(record, now);
      LogEntryView entry;
      entry.position = Position{Lsn(++lsn_), 1};
      entry.timestamp = now;
      entry.table = kBenchTable;
      entry.key = key;
      entry.value = value;
      batch.Append(entry);
    }
    const Status applied = store_->operations().ApplyBatch(batch, Position());
    if (!applied.ok()) Fail(applied);
  }
  void Checkpoint() {
    const Status taken = store_->Checkpoint([this] { return Position{Lsn(lsn_), 1}; });
    if (!taken.ok()) Fail(taken);
  }
  void Clean() {
    const Status cleaned = store_->Clean();
    if (!cleaned.ok()) Fail(cleaned);
  }
  uint64_t memory_bytes() { return store_->memory_bytes(); }
  uint64_t Counter(std::string_view name) {
    std::vector<CounterValue> counters;
    store_->AppendCounters(&counters);
    const auto found = std::ranges::find(counters, name, &CounterValue::name);
    DEUT_CHECK(found != counters.end());
    return found->value;
  }

 private:
  std::unique_ptr<RecordStore> store_;
  uint64_t lsn_ = 0;
};

// Reads one record again and again, until Stop or the destructor.
class Reader {
 public:
  Reader(LargeStore& store, uint64_t record)
      : store_(store), record_(record), thread_(RealRuntime().StartThread("bench-read", [this] { Run(); })) {}
  ~Reader() { Stop(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Returns the seconds of the longest read.
  double Stop() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.reset();
    return longest_;
  }

 private:
  void Run() {
    do {
      longest_ = std::max(longest_, SecondsOf([this] { store_.Read(record_); }));
    } while (!stop_.load(std::memory_order_relaxed));
  }

  LargeStore& store_;
  const uint64_t record_;
  double longest_ = 0;  // until Stop: used by the thread only
  std::atomic<bool> stop_{false};
  std::unique_ptr<Thread> thread_;
};

// Measures one incarnation.
void MeasureRound(Folder& folder, const BenchOptions& options, const SparseStore& made, BenchReport* report) {
  constexpr double kMiB = 1 << 20, kMilli = 1000;
  ReturnFreedMemory();
  const auto before = static_cast<double>(ResidentBytes());
  const uint64_t record = made.readable[made.readable.size() / 2];

  std::unique_ptr<LargeStore> store;
  const double opened = SecondsOf([&] { store = std::make_unique<LargeStore>(folder, options); });
  const double read = SecondsOf([&] { store->Read(record); });
  report->Add("large store: start until the first read", "s", opened + read);
  report->Add("large store: first read", "ms", read * kMilli);
  // The inner pages and the leaf that was read; the tables of pages and segments.
  const auto resident = static_cast<double>(ResidentBytes());
  report->Add("large store: resident memory after the start", "MiB", std::max(resident - before, 0.0) / kMiB);
  report->Add("large store: counted memory after the start", "MiB", static_cast<double>(store->memory_bytes()) / kMiB);
  DEUT_CHECK(store->Counter("recovery_segments") >= made.segments);
  DEUT_CHECK(store->Counter("recovery_inner_pages") == made.inner_pages);

  const auto checkpoint = [&](const std::string& name) {
    const uint64_t written = store->Counter("storage_written_bytes");
    Reader reader(*store, record);
    report->Add(name, "s", SecondsOf([&] { store->Checkpoint(); }));
    report->Add(name + ": longest read beside it", "ms", reader.Stop() * kMilli);
    report->Add(name + ": pages written", "KiB",
                static_cast<double>(store->Counter("storage_written_bytes") - written) / 1024);
  };
  checkpoint("large store: first checkpoint");
  store->Put(made.readable);
  checkpoint("large store: checkpoint after 32 updates");
  report->Add("large store: choice of a victim", "ms", SecondsOf([&] { store->Clean(); }) * kMilli);
  DEUT_CHECK(store->Counter("cleaned_bytes_read") == 0);  // there was one choice, and it found that nothing is due
  store->Read(record);
}

}  // namespace

void BenchLargeStore(const BenchOptions& options, BenchReport* report) {
  Folder folder(options);
  SparseStoreOptions wanted;
  wanted.bytes = options.store_bytes;
  wanted.segment_bytes = RoundUpToIo(options.store_segment_bytes);
  wanted.dead_every = kDeadEvery;
  SparseStore made;
  report->Add("large store: made", "s", SecondsOf([&] {
                auto store = MakeSparseStore(folder.storage(), folder.path(), wanted);
                if (!store.ok()) Fail(store.status());
                made = std::move(*store);
              }));
  report->Add("large store", "GB", static_cast<double>(made.bytes) / 1e9);
  report->Add("large store", "GB without holes", static_cast<double>(made.written_bytes) / 1e9);
  report->Add("large store", "segments", static_cast<double>(made.segments));
  report->Add("large store", "leaves", static_cast<double>(made.leaves));
  report->Add("large store", "inner pages", static_cast<double>(made.inner_pages));
  for (uint32_t round = 0; round < options.rounds; ++round) MeasureRound(folder, options, made, report);
}

}  // namespace deut::dc::bench
