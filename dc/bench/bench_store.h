// BenchStore: a data component's records, driven through the record-operations interface as its server drives it: batches of the log, point reads,
// scans in answers of 64 KiB. Every answer's checksum is compared with what it must be; a wrong one ends the process.
// Thread-safety: all methods from any thread, with a BenchThread of its own each. Two threads that apply batches have no order between them; that is
// right here because there are no low-water entries, and two updates of one record in either order leave the later one (rule X2).
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
#include "dc/record_ops/record_operations.h"
#include "protocol/record_batch.h"

namespace deut::dc::bench {

constexpr TableId kBenchTable{1};

// What one thread has done.
struct Work {
  uint64_t operations = 0;
  uint64_t records = 0;
  uint64_t record_bytes = 0;  // of updates: keys and values; of reads: of the answers
  Duration busy{0};           // of updates: inside ApplyBatch, without the making of batches
};

// A thread's own.
struct BenchThread {
  explicit BenchThread(uint64_t seed) : random(seed) {}
  Random random;
  RecordBatch answer;
  std::array<RecordBatch, 8> answers;
  Work work;
};

class BenchStore {
 public:
  // Opens what is in `directory`, or makes it. `memory_bytes`: the budget; 0: none.
  BenchStore(Storage& storage, const std::string& directory, uint64_t memory_bytes, const ChecksumTable& checksums,
             uint64_t records);

  // Inserts or updates these records, in batches of about 128 KiB.
  void Put(std::span<const uint32_t> records, BenchThread* thread);
  void PutRandom(BenchThread* thread);  // one batch
  void Delete(std::span<const uint32_t> records);
  void Lookup(uint64_t record, BenchThread* thread);
  // So many as a thread has answers for, at random and in one call.
  void LookupSeveral(BenchThread* thread);
  // `count` records from the `first` on, as far as there are.
  void Scan(uint64_t first, uint64_t count, BenchThread* thread);
  // Reads everything and compares every record with what its version must be; there must be `records`.
  void CheckAll(uint64_t records);

  uint64_t records() const { return records_; }
  uint64_t Counter(std::string_view name);
  void Checkpoint();
  // Bytes of the log so far.
  uint64_t log_bytes() const { return lsn_.load(std::memory_order_relaxed); }
  RecordOperations& operations() { return *operations_; }

 private:
  class BatchMaker;

  Timestamp NewTime() { return BenchTimestamp(time_.fetch_add(1, std::memory_order_relaxed) + 1); }

  const ChecksumTable& checksums_;
  const uint64_t records_;
  std::unique_ptr<RecordOperations> operations_;
  std::atomic<uint64_t> lsn_{0};
  std::atomic<uint32_t> time_{0};
};

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_STORE_H_
