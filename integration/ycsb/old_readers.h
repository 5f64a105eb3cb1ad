// OldReaders: transactions that stay open while others write. Each must see the same state as when it began.
//
// A reader reads some records by points and by a scan, and repeats these reads until it has been open for its time.
// Then a new reader replaces it. The readers begin evenly spread over that time, so that the store keeps versions of
// many ages. A repeated read that differs is a failure.
// Thread-safety: one thread calls Start and Stop. Ownership: the client outlives the OldReaders. Errors: the errors
// of the readers, except aborts and, if they are tolerated, outages: those readers are replaced.
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
  static constexpr uint64_t kPoints = 16;                // records that a reader reads by points
  static constexpr uint64_t kScanned = 50;               // records that it reads by its scan
  static constexpr Duration kPause = milliseconds(200);  // between two rounds, in which all readers read again

  // Keeps `count` readers open, each for `hold`; 0: from Start to Stop.
  OldReaders(Client& client, TableId table, const BenchmarkOptions& options, uint32_t count, Duration hold);
  ~OldReaders();

  // Returns when all readers have begun.
  Status Start();
  // Lets all readers read once more, then ends them. Returns the first failure.
  Status Stop();

  struct Counters {
    uint64_t begun = 0, aborted = 0;
    uint64_t looks = 0;       // number of times that a reader has read all of its records again
    double longest_held = 0;  // seconds
  };
  Counters counters() const { return counters_; }  // after Stop

 private:
  struct Reader {
    std::optional<Transaction> transaction;
    uint64_t first = 0;  // the record at which its scan begins
    std::vector<std::string> keys;
    std::string seen;  // the result of its first reads, as text
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
