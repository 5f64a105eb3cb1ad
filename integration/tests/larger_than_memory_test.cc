// Data far larger than the data component's memory is loaded, read, scanned, updated and deleted, and every byte is
// checked. There are two cases:
//   Pages    --dc_memory bounds the pages. The process may have that, a tenth more, and a fixed part.
//   Process  --memory bounds the processes of both daemons. Each may have that and a twentieth more.
// Meanwhile the kernel limits the memory of the dcd's process.
//   DEUT_DATA_MIB    bytes of values (default 448)
//   DEUT_BUDGET_MIB  --dc_memory (default 48)
//   DEUT_MEMORY_MIB  --memory (default 320)
// The long run: DEUT_DATA_MIB=8192 DEUT_BUDGET_MIB=512 DEUT_MEMORY_MIB=1024. The test prints figures of each phase.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "integration/harness/cluster.h"
#include "integration/harness/memory_group.h"
#include "tc/client/client.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"
#include "tc/client/scanner.h"
#include "tc/client/transaction.h"

namespace deut {
namespace {

using testing::Cluster;
using testing::ClusterOptions;
using testing::CounterOf;
using testing::FilesInCache;
using testing::MemoryGroup;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kValueBytes = 1000;
constexpr uint64_t kThreads = 4;
constexpr uint64_t kBatch = 100;  // one transaction writes this many records
// The part beyond the budget and a tenth: the program and the stacks of its threads, buffers of 4 appenders and 2
// batches, log that is received and not yet applied with gRPC's own buffers, and fragmented memory of the allocator.
constexpr uint64_t kFixedBytes = 256 * kMiB;
// A control group counts memory of the kernel, too, which is not resident in the process.
constexpr uint64_t kKernelBytes = 64 * kMiB;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A key's place in the order has no relation to the order of the load, so writes spread over all pages.
std::string KeyOf(uint64_t place) {
  char key[24];
  (void)std::snprintf(key, sizeof(key), "user%012" PRIu64, place);
  return key;
}

// Writes random bytes that place and version determine, so a reader can check a value by making it again.
void MakeValue(uint64_t place, uint64_t version, std::string* value) {
  Random random(Mix64(place) ^ version);
  value->resize(kValueBytes);
  for (size_t at = 0; at < kValueBytes; at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    value->replace(at, sizeof(word), reinterpret_cast<const char*>(&word), sizeof(word));
  }
}

enum class Bounds : uint8_t { kPages, kProcess };

class LargerThanMemoryTest : public ::testing::TestWithParam<Bounds> {
 protected:
  LargerThanMemoryTest()
      : data_bytes_(FromEnvironment("DEUT_DATA_MIB", 448) * kMiB),
        budget_((of_process() ? FromEnvironment("DEUT_MEMORY_MIB", 320) : FromEnvironment("DEUT_BUDGET_MIB", 48)) *
                kMiB),
        limit_(of_process() ? budget_ + budget_ / 20 : budget_ + budget_ / 10 + kFixedBytes),
        records_(data_bytes_ / kValueBytes / kBatch * kBatch),
        versions_(records_),
        group_(MemoryGroup::Create(of_process() ? limit_ + kKernelBytes : limit_)) {
    ClusterOptions options;
    if (group_ != nullptr) options.dc.prefix = group_->Prefix();
    options.dc.flags = {Concat(of_process() ? "--memory=" : "--dc_memory=", budget_)};
    if (of_process()) options.tc.flags.push_back(Concat("--memory=", budget_));
    options.tc.flags.emplace_back("--cache_written=false");  // so that reads reach the DC
    cluster_ = std::make_unique<Cluster>(options);
  }

  static bool of_process() { return GetParam() == Bounds::kProcess; }
  Client& client() { return cluster_->client(); }
  uint64_t DcCounter(std::string_view name) {
    const Result<ServiceStatus> status = client().GetStatus();
    return status.ok() ? CounterOf(status.value().dc, name) : 0;
  }

  // Runs a phase on all threads. Each call of `work(thread, begin, random)` does the kBatch units from `begin` on,
  // until `units` are done. Prints the figures, and checks memory during the phase and after it.
  void Phase(const char* name, uint64_t units,
             const std::function<void(uint64_t thread, uint64_t begin, Random& random)>& work) {
    const MonotonicTime begin = RealRuntime().Now();
    std::atomic<uint64_t> next{0};
    std::atomic<uint64_t> running{kThreads};
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      threads.push_back(RealRuntime().StartThread("client", [&, thread] {
        Random random(seed_ + thread);
        for (uint64_t at = 0; !HasFailure() && (at = next.fetch_add(kBatch)) < units;) work(thread, at, random);
        running.fetch_sub(1);
      }));
    }
    while (running.load() != 0) {
      LookAtMemory();
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(200));
    }
    threads.clear();
    LookAtMemory();
    const double took = std::chrono::duration<double>(RealRuntime().Now() - begin).count();
    const FilesInCache files = testing::LookAtFiles(cluster_->directory().Sub("dc"));
    std::printf("%-8s %9" PRIu64 " in %6.1f s, %8.0f/s; the DC: accounted at most %4" PRIu64
                " MiB, resident at most %4" PRIu64 " MiB, files %6" PRIu64 " MiB, of them in the page cache %" PRIu64
                " MiB\n",
                name, units, took, static_cast<double>(units) / took, accounted_ / kMiB, Resident() / kMiB,
                files.bytes / kMiB, files.cached / kMiB);
    (void)std::fflush(stdout);
    EXPECT_GT(files.bytes, 0u);
    EXPECT_LE(files.cached, files.bytes / 100 + kMiB);
    ASSERT_TRUE(cluster_->dc()->Running()) << "the data component has ended; the limit was " << limit_ / kMiB << " MiB";
    EXPECT_GT(accounted_, 0u);
    EXPECT_LE(accounted_, budget_ + budget_ / 10) << name;
    EXPECT_GT(Resident(), accounted_ / 2) << "it is the DC that is measured";
    EXPECT_LE(Resident(), limit_) << name;
    if (of_process()) EXPECT_LE(testing::PeakResidentBytes(cluster_->tc()->pid()), limit_) << name;
  }
  void LookAtMemory() { accounted_ = std::max(accounted_, DcCounter("memory_bytes")); }
  uint64_t Resident() const { return testing::PeakResidentBytes(cluster_->dc()->pid()); }

  void Fail(const Status& status, std::string_view what) {
    const MutexLock lock(mutex_);
    ADD_FAILURE() << what << ": " << status.ToString();
  }
  bool Check(uint64_t place, std::string_view value, std::string* expected) {
    const uint64_t version = versions_[place].load();
    if (version != 0) MakeValue(place, version, expected);
    if (version != 0 && value == *expected) return true;
    Fail(Status::Ok(), Concat(KeyOf(place), " is there and is not what was written last (version ", version, ")"));
    return false;
  }
  RetryOptions Retries() const {
    RetryOptions options;
    options.transaction.durability = Durability::kBuffered;
    options.timeout = seconds(120);
    return options;
  }
  // Returns the place of the nth record to be loaded: a bijection of [0, records_).
  uint64_t PlaceOf(uint64_t n) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(n) * kStride) % records_);
  }
  static constexpr uint64_t kStride = 1'000'000'007;  // a prime that does not divide any number of records in use

  const uint64_t data_bytes_, budget_, limit_, records_;
  std::vector<std::atomic<uint8_t>> versions_;  // 0: the record is not there
  const std::unique_ptr<MemoryGroup> group_;
  std::unique_ptr<Cluster> cluster_;
  TableId table_;
  const uint64_t seed_ = FromEnvironment("DEUT_SEED", 1);
  uint64_t accounted_ = 0;
  Mutex mutex_{RealRuntime()};
};

INSTANTIATE_TEST_SUITE_P(Bounds, LargerThanMemoryTest, ::testing::Values(Bounds::kPages, Bounds::kProcess),
                         [](const auto& info) { return info.param == Bounds::kPages ? "Pages" : "Process"; });

TEST_P(LargerThanMemoryTest, EverythingGoesThrough) {
  std::printf("%" PRIu64 " records, %" PRIu64 " MiB of values; budget %" PRIu64 " MiB, limit %" PRIu64 " MiB %s\n",
              records_, data_bytes_ / kMiB, budget_ / kMiB, limit_ / kMiB,
              group_ != nullptr ? "kept by the kernel" : "measured only");
  ASSERT_TRUE(cluster_->AwaitServing().ok());
  const Result<TableId> created = client().CreateTable("records");
  ASSERT_TRUE(created.ok()) << created.status().ToString();
  table_ = created.value();

  Phase("load", records_, [&](uint64_t, uint64_t begin, Random&) {
    OneShot puts(client());
    std::string value;
    for (uint64_t n = begin; n < begin + kBatch; ++n) {
      const uint64_t place = PlaceOf(n);
      MakeValue(place, 1, &value);
      puts.Put(table_, KeyOf(place), value);
      versions_[place].store(1);
    }
    const Result<CommitAnswer> done = RunOneShot(puts, Retries());
    if (!done.ok()) Fail(done.status(), "load");
  });
  if (HasFailure()) return;

  Phase("read", records_ / 50, [&](uint64_t, uint64_t, Random& random) {
    std::string expected;
    for (uint64_t n = 0; n < kBatch; ++n) {
      const uint64_t place = random.Below(records_);
      OneShot read(client());
      read.Get(table_, KeyOf(place));
      const Result<CommitAnswer> done = RunOneShot(read, Retries());
      if (!done.ok()) return Fail(done.status(), "read");
      const RecordBatch& found = read.result(0).records;
      if (found.empty()) return Fail(Status::Ok(), Concat(KeyOf(place), " is missing"));
      if (!Check(place, RecordBatch::Iterator(found).record().value, &expected)) return;
    }
  });
  if (HasFailure()) return;

  Phase("scan", records_ / 10, [&](uint64_t, uint64_t, Random& random) {
    std::string expected;
    const uint64_t first = random.Below(records_ - kBatch);
    const Status done = RunTransaction(client(), Retries(), [&](Transaction& transaction) -> Status {
      DEUT_ASSIGN_OR_RETURN(const ScanResult found,
                            transaction.Scan(table_, {.low = KeyOf(first), .high = KeyOf(first + kBatch)}));
      uint64_t place = first;
      for (RecordBatch::Iterator it(found.records); it.Valid(); it.Next()) {
        const auto& record = it.record();
        if (record.key != KeyOf(place)) return DEUT_ERROR(kCorruption, KeyOf(place), " is missing in a scan");
        if (!Check(place, record.value, &expected)) return Status::Ok();
        ++place;
      }
      if (place != first + kBatch) return DEUT_ERROR(kCorruption, "a scan is short of records: ", place - first);
      return Status::Ok();
    });
    if (!done.ok()) Fail(done, "scan");
  });
  if (HasFailure()) return;

  // Each thread updates places of its own, so it knows the last version of each.
  Phase("update", records_ / 20, [&](uint64_t thread, uint64_t, Random& random) {
    std::string value;
    for (uint64_t n = 0; n < kBatch; n += 4) {
      OneShot puts(client());
      std::vector<uint64_t> places;
      for (uint64_t i = 0; i < 4; ++i) {
        const uint64_t place = random.Below(records_ / kThreads) * kThreads + thread;
        if (std::find(places.begin(), places.end(), place) != places.end()) continue;
        places.push_back(place);
        MakeValue(place, versions_[place].load() + uint64_t{1}, &value);
        puts.Put(table_, KeyOf(place), value);
      }
      const Result<CommitAnswer> done = RunOneShot(puts, Retries());
      if (!done.ok()) return Fail(done.status(), "update");
      for (const uint64_t place : places) versions_[place].fetch_add(1);
    }
  });
  if (HasFailure()) return;

  // Deletes the first third of the places.
  Phase("delete", records_ / 3 / kBatch * kBatch, [&](uint64_t, uint64_t begin, Random&) {
    OneShot removes(client());
    for (uint64_t place = begin; place < begin + kBatch; ++place) {
      removes.Remove(table_, KeyOf(place));
      versions_[place].store(0);
    }
    const Result<CommitAnswer> done = RunOneShot(removes, Retries());
    if (!done.ok()) Fail(done.status(), "delete");
  });
  if (HasFailure()) return;

  // Reads all records in one transaction, from the data component.
  const Status dropped = client().DropCaches({.timeout = seconds(600)});
  ASSERT_TRUE(dropped.ok()) << dropped.ToString();
  const uint64_t there = static_cast<uint64_t>(std::count_if(
      versions_.begin(), versions_.end(), [](const std::atomic<uint8_t>& version) { return version.load() != 0; }));
  Phase("all", 1, [&](uint64_t, uint64_t, Random&) {
    std::string expected;
    RetryOptions options = Retries();
    options.transaction.isolation = Isolation::kSnapshot;
    options.timeout = seconds(600);
    const Status done = RunTransaction(client(), options, [&](Transaction& transaction) -> Status {
      Scanner scanner = transaction.OpenScanner(table_, {});
      uint64_t found = 0;
      while (scanner.Next()) {
        const uint64_t place = std::strtoull(std::string(scanner.key().substr(4)).c_str(), nullptr, 10);
        if (place >= records_ || !Check(place, scanner.value(), &expected)) return Status::Ok();
        ++found;
      }
      DEUT_RETURN_IF_ERROR(scanner.status());
      if (found != there) return DEUT_ERROR(kCorruption, found, " records in place of ", there);
      return Status::Ok();
    });
    if (!done.ok()) Fail(done, "all");
  });
  if (group_ != nullptr && group_->PeakBytes() != 0) {
    std::printf("the kernel counts at most %" PRIu64 " MiB\n", group_->PeakBytes() / kMiB);
  }
  EXPECT_GT(DcCounter("pages_swapped_out"), 0u);
}

}  // namespace
}  // namespace deut
