// BenchStore: a data component's records, driven through the record-operations interface as its server drives it:
// batches of the log, point reads, scans in answers of 64 KiB. The checksum of every answer is compared with the
// expected one; a wrong one ends the process.
// Thread-safety: all methods from any thread, each with a BenchThread of its own. Two threads that apply batches have
// no order between them. That is correct here: there are no low-water entries, and two updates of one record leave
// the later one in either order (rule X2). Ownership: owns the records.
#ifndef DC_BENCH_BENCH_STORE_H_
#define DC_BENCH_BENCH_STORE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/bench/bench_records.h"
#include "dc/store/record_store.h"
#include "protocol/record_batch.h"

namespace deut::dc::bench {

constexpr TableId kBenchTable{1};

// The work that one thread has done.
struct Work {
  uint64_t operations = 0;
  uint64_t records = 0;
  uint64_t misses = 0;        // lookups whose page was not in memory
  uint64_t record_bytes = 0;  // bytes of keys and values (updates) or of the answers (reads)
  Duration busy{0};           // updates: time inside ApplyBatch, without building batches
};

// State of one thread.
struct BenchThread {
  explicit BenchThread(uint64_t seed) : random(seed) {}
  Random random;
  RecordBatch answer;
  std::array<RecordBatch, 8> answers;
  Work work;
};

class BenchStore {
 public:
  // Opens the records in `directory`, or creates them. `memory_bytes`: the budget; 0: none.
  BenchStore(Storage& storage, const std::string& directory, uint64_t memory_bytes, const ChecksumTable& checksums,
             uint64_t records);

  // Inserts or updates these records, in batches of about 128 KiB.
  void Put(std::span<const uint32_t> records, BenchThread* thread);
  void PutRandom(BenchThread* thread);  // puts one batch
  void Delete(std::span<const uint32_t> records);
  void Lookup(uint64_t record, BenchThread* thread);
  // Looks up as many random records as a thread has answers for, in one call.
  void LookupSeveral(BenchThread* thread);
  // Scans `count` records from `first` on, or up to the last one.
  void Scan(uint64_t first, uint64_t count, BenchThread* thread);
  // Reads everything and compares every record with its version's value; there must be `records` of them.
  void CheckAll(uint64_t records);

  uint64_t records() const { return records_; }
  uint64_t Counter(std::string_view name);
  void Checkpoint();
  // Bytes of the log so far.
  uint64_t log_bytes() const { return lsn_.load(std::memory_order_relaxed); }
  RecordOperations& operations() { return store_->operations(); }
  uint64_t memory_bytes() { return store_->memory_bytes(); }

 private:
  class BatchMaker;

  Timestamp NewTime() { return BenchTimestamp(time_.fetch_add(1, std::memory_order_relaxed) + 1); }

  const ChecksumTable& checksums_;
  const uint64_t records_;
  std::unique_ptr<RecordStore> store_;
  std::atomic<uint64_t> lsn_{0};
  std::atomic<uint32_t> time_{0};
};

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_STORE_H_
