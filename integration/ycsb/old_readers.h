// OldReaders: transactions that stay open while others write, and see what they saw when they began.
//
// Each reads some records by points and by a scan, reads them again again and again until it has been open for its time, then another takes its
// place. They begin evenly spread over that time, so that versions of many ages are held. What is read again and differs is a failure.
// Thread-safety: Start, Stop by one thread. Ownership: the client outlives it. Errors: what a reader meets but for aborts and, if they are
//   tolerated, outages: those readers are replaced.
#ifndef INTEGRATION_YCSB_OLD_READERS_H_
#define INTEGRATION_YCSB_OLD_READERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "integration/ycsb/benchmark_options.h"
#include "tc/client/client.h"

namespace deut::ycsb {

class OldReaders {
 public:
  static constexpr uint64_t kPoints = 16;                // records of a reader, by points
  static constexpr uint64_t kScanned = 50;               // and by its scan
  static constexpr Duration kPause = milliseconds(200);  // between two looks of all readers

  // `count` readers at a time, each for `hold`; 0: from Start to Stop.
  OldReaders(Client& client, TableId table, const BenchmarkOptions& options, uint32_t count, Duration hold);
  ~OldReaders();

  // Answers when all have begun.
  Status Start();
  // After a last look of all. The first failure there was.
  Status Stop();

  struct Counters {
    uint64_t begun = 0, aborted = 0;
    uint64_t looks = 0;       // readers that have read all of theirs again
    double longest_held = 0;  // seconds
  };
  Counters counters() const { return counters_; }  // after Stop

 private:
  struct Reader {
    std::optional<Transaction> transaction;
    uint64_t first = 0;  // the record where its scan begins
    std::vector<std::string> keys;
    std::string seen;  // what it has read, as text
    MonotonicTime begun;
    Duration hold{0};
  };

  Status Begin(Reader* reader);
  Status LookAgain(Reader* reader);
  Result<std::string> Look(Reader* reader);
  void Run();

  Client& client_;
  const TableId table_;
  const BenchmarkOptions options_;
  const Duration hold_;
  Random random_;
  std::vector<Reader> readers_;
  Counters counters_;
  Status failure_;
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_OLD_READERS_H_
