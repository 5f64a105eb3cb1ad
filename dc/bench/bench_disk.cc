// The parts that use a real disk: data beyond memory, recovery, and the cost of checkpoints for concurrent work.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_run.h"
#include "dc/bench/bench_store.h"

namespace deut::dc::bench {
namespace {

// The server's value (CheckpointPolicy).
constexpr uint64_t kLogBytesPerCheckpoint = 64 << 20;

// A directory on a disk, emptied at the beginning and at the end.
class BenchDisk {
 public:
  explicit BenchDisk(const BenchOptions& options)
      : storage_(std::move(*NewSystemStorage(IoKind::kAuto, RealRuntime()))),
        path_((options.directory.empty() ? temporary_.path() : options.directory) + "/pages") {
    Empty();
  }
  ~BenchDisk() { Empty(); }
  BenchDisk(const BenchDisk&) = delete;
  BenchDisk& operator=(const BenchDisk&) = delete;

  Storage& storage() { return *storage_; }
  const std::string& path() const { return path_; }

 private:
  void Empty() {
    const auto names = storage_->List(path_);
    if (!names.ok()) return;
    for (const std::string& name : *names) DEUT_CHECK(storage_->Remove(path_ + "/" + name).ok());
  }

  const testing::TempDir temporary_;
  const std::unique_ptr<Storage> storage_;
  const std::string path_;
};

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// The store's disk traffic so far.
struct Traffic {
  explicit Traffic(BenchStore& store)
      : loaded(store.Counter("pages_loaded")),
        read(store.Counter("storage_read_bytes")),
        written(store.Counter("storage_written_bytes")) {}
  uint64_t loaded, read, written;
};

// Runs an operation beyond memory, and adds its disk traffic to the report.
void MeasureTraffic(const std::string& name, BenchStore& store, bool writes, const std::function<RunResult()>& run,
                    BenchReport* report) {
  const Traffic before(store);
  const RunResult result = run();
  const Traffic after(store);
  const auto operations = static_cast<double>(result.work.operations);
  const auto bytes = static_cast<double>(result.work.record_bytes);
  report->Add(name, "operations/s", result.per_second);
  report->Add(name, "pages loaded/operation", static_cast<double>(after.loaded - before.loaded) / operations);
  if (writes) {
    report->Add(name, "bytes written/byte", static_cast<double>(after.written - before.written) / bytes);
  } else {
    report->Add(name, "bytes read/byte", static_cast<double>(after.read - before.read) / bytes);
  }
}

// Scans everything again and again, until it is destroyed.
class EndlessScan {
 public:
  explicit EndlessScan(BenchStore& store)
      : store_(store), thread_(RealRuntime().StartThread("bench-scan", [this] { Run(); })) {}
  ~EndlessScan() {
    stop_.store(true, std::memory_order_relaxed);
    thread_->Join();
  }
  EndlessScan(const EndlessScan&) = delete;
  EndlessScan& operator=(const EndlessScan&) = delete;

 private:
  void Run() {
    constexpr uint64_t kPieces = 8;  // so that the end waits for an eighth of a scan
    BenchThread thread(1);
    const uint64_t records = store_.records(), piece = (records + kPieces - 1) / kPieces;
    for (uint64_t first = 0; !stop_.load(std::memory_order_relaxed);
         first = first + piece < records ? first + piece : 0)
      store_.Scan(first, piece, &thread);
  }

  BenchStore& store_;
  std::atomic<bool> stop_{false};
  const std::unique_ptr<Thread> thread_;
};

void Load(BenchStore& store, uint64_t records, BenchThread* thread) {
  const std::vector<uint32_t> order = ShuffledRecords(records, 1);
  store.Put(order, thread);
}

}  // namespace

void BenchBeyondMemory(const BenchOptions& options, BenchReport* report) {
  const ChecksumTable checksums(options.records);
  BenchDisk disk(options);
  BenchStore store(disk.storage(), disk.path(), checksums.bytes() / options.memory_share, checksums, options.records);
  MeasureTraffic(
      "disk: insert", store, /*writes=*/true,
      [&] { return RunOnce(1, 1, [&](uint32_t, BenchThread* thread) { Load(store, options.records, thread); }); },
      report);
  store.Checkpoint();

  const uint64_t records = options.records;
  const auto anywhere = [records](BenchThread* thread) { return thread->random.Below(records); };
  const auto hot = [records](BenchThread* thread) {
    return thread->random.OneIn(10) ? thread->random.Below(records) : thread->random.Below(records / 10);
  };
  for (uint32_t round = 0; round < options.rounds; ++round) {
    for (uint32_t threads = 1; threads <= 2; ++threads) {
      const auto measure = [&](std::string_view what, bool writes, const Operation& operation) {
        const std::string name = Concat("disk: ", what, ", ", threads, threads == 1 ? " thread" : " threads");
        MeasureTraffic(name, store, writes, [&] { return RunFor(threads, options.time, round, operation); }, report);
      };
      measure("lookup", false, [&](BenchThread* thread) { store.Lookup(anywhere(thread), thread); });
      measure("lookup, 9 of 10 in a tenth", false, [&](BenchThread* thread) { store.Lookup(hot(thread), thread); });
      measure("scan of 1-100 records", false,
              [&](BenchThread* thread) { store.Scan(anywhere(thread), thread->random.Between(1, 100), thread); });
      measure("scan of 10,000 records", false,
              [&](BenchThread* thread) { store.Scan(anywhere(thread), 10000, thread); });
      measure("update", true, [&](BenchThread* thread) { store.PutRandom(thread); });
    }
    const EndlessScan scan(store);
    const RunResult beside =
        RunFor(1, options.time, round, [&](BenchThread* thread) { store.Lookup(hot(thread), thread); });
    const std::string name = "disk: lookup, 9 of 10 in a tenth, beside a scan of everything";
    report->Add(name, "operations/s", beside.per_second);
    report->Add(name, "misses/operation",
                static_cast<double>(beside.work.misses) / static_cast<double>(beside.work.operations));
  }
  store.CheckAll(records);
  report->Add(
      "disk: memory used / budget", "ratio",
      static_cast<double>(store.memory_bytes() * options.memory_share) / static_cast<double>(checksums.bytes()));
}

void BenchRecovery(const BenchOptions& options, BenchReport* report) {
  constexpr double kBytesPerRecord = 140;
  for (const double share : {0.25, 0.5, 1.0}) {
    const double gib = options.recovery_gib * share;
    const auto records = static_cast<uint64_t>(gib * (1 << 30) / kBytesPerRecord);
    const ChecksumTable checksums(records);
    BenchDisk disk(options);
    {
      BenchStore store(disk.storage(), disk.path(), /*memory_bytes=*/0, checksums, records);
      BenchThread thread(1);
      Load(store, records, &thread);
      store.Checkpoint();
    }
    // Redo comes from outside: the benchmark applies the updates that the log would repeat.
    for (const uint64_t redo_mib : options.redo_mib) {
      const MonotonicTime begin = RealRuntime().Now();
      BenchStore store(disk.storage(), disk.path(), /*memory_bytes=*/0, checksums, records);
      const double opened = Seconds(RealRuntime().Now() - begin);
      const std::string name = absl::StrFormat("recovery of %.3g GiB", gib);
      report->Add(name, "s", opened);
      BenchThread thread(redo_mib);
      while (thread.work.record_bytes < redo_mib << 20) store.PutRandom(&thread);
      report->Add(absl::StrFormat("%s: redo of %d MiB", name, redo_mib), "s", Seconds(thread.work.busy));
      report->Add(absl::StrFormat("%s: redo of %d MiB", name, redo_mib), "updates/s",
                  static_cast<double>(thread.work.operations) / Seconds(thread.work.busy));
      store.CheckAll(records);
    }
  }
}

namespace {

// Takes checkpoints as the server does, until it is destroyed.
class Checkpoints {
 public:
  explicit Checkpoints(BenchStore& store)
      : store_(store), thread_(RealRuntime().StartThread("bench-checkpt", [this] { Run(); })) {}
  ~Checkpoints() {
    stop_.store(true, std::memory_order_relaxed);
    thread_->Join();
  }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

 private:
  void Run() {
    for (uint64_t due = store_.log_bytes() + kLogBytesPerCheckpoint; !stop_.load(std::memory_order_relaxed);) {
      if (store_.log_bytes() < due) {
        RealRuntime().SleepUntil(RealRuntime().Now() + std::chrono::milliseconds(1));
        continue;
      }
      due = store_.log_bytes() + kLogBytesPerCheckpoint;
      store_.Checkpoint();
    }
  }

  BenchStore& store_;
  std::atomic<bool> stop_{false};
  const std::unique_ptr<Thread> thread_;
};

}  // namespace

void BenchCheckpoint(const BenchOptions& options, BenchReport* report) {
  const ChecksumTable checksums(options.records);
  BenchDisk disk(options);
  BenchStore store(disk.storage(), disk.path(), /*memory_bytes=*/0, checksums, options.records);
  BenchThread loader(1);
  Load(store, options.records, &loader);
  store.Checkpoint();
  const auto update = [&store](BenchThread* thread) { store.PutRandom(thread); };
  const auto lookup = [&store](BenchThread* thread) { store.Lookup(thread->random.Below(store.records()), thread); };
  for (uint32_t round = 0; round < options.rounds; ++round) {
    double rates[2][2] = {};
    for (const bool with : {false, true}) {
      std::unique_ptr<Checkpoints> checkpoints;
      if (with) checkpoints = std::make_unique<Checkpoints>(store);
      const uint64_t written = store.Counter("storage_written_bytes");
      const RunResult updates = RunFor(1, 2 * options.time, round, update);
      if (with) {
        const double bytes = static_cast<double>(store.Counter("storage_written_bytes") - written);
        report->Add("checkpoint: every 64 MiB of log", "bytes written/byte",
                    bytes / static_cast<double>(updates.work.record_bytes));
      }
      rates[0][with ? 1 : 0] = updates.per_second;
      // Measures lookups while another thread updates.
      std::atomic<bool> stop{false};
      const auto updater = RealRuntime().StartThread("bench-update", [&] {
        BenchThread thread(round + 77);
        while (!stop.load(std::memory_order_relaxed)) store.PutRandom(&thread);
      });
      rates[1][with ? 1 : 0] = RunFor(1, 2 * options.time, round, lookup).per_second;
      stop.store(true, std::memory_order_relaxed);
      updater->Join();
    }
    report->Add("checkpoint: updates with / without", "ratio", rates[0][1] / rates[0][0]);
    report->Add("checkpoint: lookups (and updates) with / without", "ratio", rates[1][1] / rates[1][0]);
  }
  report->Add("checkpoint: taken", "checkpoints", static_cast<double>(store.Counter("checkpoints")));
}

}  // namespace deut::dc::bench
