// Litmus of rules R1 and R2 on the real functions, ten million rounds on two threads. In every round a writer that has its posting publishes a
// key in its write set and then checks the range's last_read. A reader raises last_read and then looks at the postings' write sets.
// Both may find each other. If neither finds the other, that is a phantom. With a publication weaker than sequentially consistent
// (R1.publish_order) the check may overtake the store, and phantoms occur.
#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "gtest/gtest.h"
#include "tc/mvcc/range_table.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {
namespace {

constexpr uint32_t kBatch = 2000;
constexpr uint32_t kBatches = 5000;  // ten million rounds
constexpr Timestamp kWriter{10}, kReader{20};

// One batch: one range per round, and one transaction that has posted in all of them.
struct Batch {
  explicit Batch(ReclamationDomain& d) : domain(d), record(new TransactionRecord(kWriter)) {
    for (uint32_t i = 0; i < kBatch; ++i) {
      ranges.push_back(std::make_unique<Range>("", "", Timestamp{0}));
      EXPECT_TRUE(ranges.back()->Post(record));
    }
  }
  ~Batch() {
    ReclamationDomain::Guard guard(domain);
    for (const auto& range : ranges) range->RemovePostings(domain, [](const TransactionRecord&) { return true; });
    record->DropReference(domain);
  }
  ReclamationDomain& domain;
  TransactionRecord* const record;
  std::vector<std::unique_ptr<Range>> ranges;
};

// A meeting point of two threads. Spins, because the threads are to start together.
class Barrier {
 public:
  void Meet() {
    const uint32_t round = round_.load();
    if (arrived_.fetch_add(1) == 1) {
      arrived_.store(0);
      round_.fetch_add(1);
      return;
    }
    for (uint32_t spins = 0; round_.load() == round; ++spins) {
      if (spins > 2000) RealRuntime().Yield();
    }
  }

 private:
  std::atomic<uint32_t> round_{0};
  std::atomic<uint32_t> arrived_{0};
};

TEST(RangeLitmusTest, WriterAndReaderNeverMissEachOther) {
  ReclamationDomain domain;
  Barrier barrier;
  std::unique_ptr<Batch> batch;
  std::vector<char> writer_passed(kBatch), reader_saw(kBatch);
  std::atomic<bool> done{false};
  // The step of each thread, so that neither runs ahead: both must play the same round at the same time.
  alignas(64) std::atomic<uint32_t> writer_at{0};
  alignas(64) std::atomic<uint32_t> reader_at{0};
  const auto keep_step = [](std::atomic<uint32_t>& mine, const std::atomic<uint32_t>& other, uint32_t i) {
    mine.store(i, std::memory_order_relaxed);
    // Bounded: the other thread may have been descheduled.
    for (uint32_t spins = 0; spins < 300 && other.load(std::memory_order_relaxed) < i; ++spins) {
    }
  };
  std::unique_ptr<Thread> reader = RealRuntime().StartThread("reader", [&] {
    for (;;) {
      barrier.Meet();
      if (done.load()) return;
      for (uint32_t i = 0; i < kBatch; ++i) {
        keep_step(reader_at, writer_at, i);
        Range& range = *batch->ranges[i];
        EXPECT_TRUE(range.RaiseLastRead(kReader));
        bool saw = false;
        range.ForEachPosting([&](TransactionRecord& record) {
          saw = record.write_set()->size() > i;
          return true;
        });
        reader_saw[i] = saw;
      }
      barrier.Meet();
    }
  });
  uint64_t missed = 0, both = 0, rounds = 0;
  for (uint32_t b = 0; b < kBatches && missed == 0; ++b) {
    batch = std::make_unique<Batch>(domain);
    WriteSet& writes = batch->record->MakeWriteSet();
    writer_at.store(0);
    reader_at.store(0);
    barrier.Meet();
    for (uint32_t i = 0; i < kBatch; ++i) {
      keep_step(writer_at, reader_at, i);
      writes.Publish(TableId{1}, "key", i);
      writer_passed[i] = batch->ranges[i]->last_read() <= kWriter;
    }
    barrier.Meet();
    for (uint32_t i = 0; i < kBatch; ++i) {
      missed += writer_passed[i] && !reader_saw[i];
      both += !writer_passed[i] && reader_saw[i];
    }
    rounds += kBatch;
  }
  done.store(true);
  barrier.Meet();
  reader.reset();
  EXPECT_EQ(missed, 0u) << "phantoms in " << rounds << " rounds";
  RecordProperty("rounds", static_cast<int>(rounds));
  RecordProperty("both_found_each_other", static_cast<int>(both));
}

}  // namespace
}  // namespace deut::tc
