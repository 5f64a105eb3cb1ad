// KillLoad: the clients' work while daemons are killed, and the checks of the store afterwards. There are three kinds
// of load, each with threads of its own:
//   pairs    two keys far apart, written blindly in one message, or interactively after they are read
//   runs     many neighbouring keys, written or removed as a whole, so that pages are split and merged again
//   tables   created, filled, dropped, one after the other, so that roots change and the space of whole trees is freed
// Usage: Start, AwaitProgress, kill and start daemons, AwaitProgress, Stop, Check; any number of times.
// Thread-safety: one thread; the load has its own threads. Ownership: the client outlives the load. It reports errors
// by googletest's EXPECT and ASSERT.
#ifndef INTEGRATION_TESTS_KILL_LOAD_H_
#define INTEGRATION_TESTS_KILL_LOAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "integration/tests/group_oracle.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"

namespace deut::testing {

struct KillLoadOptions {
  uint32_t pairs = 64;
  int pair_threads = 4;
  // With 0 run_threads there are no runs.
  uint32_t runs = 96;
  uint32_t keys_per_run = 32;
  int run_threads = 0;
  bool tables = false;
};

class KillLoad {
 public:
  KillLoad(Client& client, uint64_t seed, const KillLoadOptions& options);
  ~KillLoad();
  KillLoad(const KillLoad&) = delete;
  KillLoad& operator=(const KillLoad&) = delete;

  // Creates the tables.
  Status Prepare();
  void Start();
  void Stop();
  // Waits until this many more writes of pairs are acknowledged.
  void AwaitProgress(uint64_t writes);
  // Reads everything in serializable transactions, by points and by scans. REQUIRES: the load is stopped.
  void Check();

  TableId pairs_table() const { return families_.front()->table; }
  uint64_t acknowledged() const;
  uint64_t unknown() const;
  uint64_t refused() const { return refused_.load(); }
  // REQUIRES: the load is stopped.
  uint64_t tables_dropped() const { return passing_.number; }

 private:
  // Groups of one shape.
  struct Family {
    Family(std::string name_of, uint32_t count, uint32_t keys, bool run)
        : name(std::move(name_of)), groups(count), keys_per_group(keys), is_run(run), oracle(count) {}
    // Keys of a group are neighbours in a run, otherwise far apart.
    std::string KeyOf(uint32_t group, uint32_t key) const;

    const std::string name;
    const uint32_t groups, keys_per_group;
    const bool is_run;
    GroupOracle oracle;
    TableId table;
  };
  // The table that is being filled or dropped. One thread owns it, and learns the outcome of every step before it
  // takes the next.
  struct Passing {
    uint64_t number = 0;
    bool is_there = false;
    uint32_t rows = 0;
    TableId id;
  };

  void WriteOnce(Family& family, Random& random);
  Status WriteBlindly(Family& family, uint32_t group, uint64_t write, RetryReport* report);
  Status WriteAfterReading(Family& family, uint32_t group, uint64_t write, RetryReport* report);
  void PassTable();
  // Waits until it may take another step. It paces the steps, because each table leaves its name behind for ever.
  void PaceTableSteps();
  // Repeats the call until its answer is final: OK, `decided`, or an error that is not worth a retry.
  Status RetryUntilDecided(ErrorCode decided, const std::function<Status()>& ask);
  void CheckGroups(Family& family);
  void CheckTables();

  Client& client_;
  Random random_;
  const KillLoadOptions options_;
  std::vector<std::unique_ptr<Family>> families_;
  Passing passing_;
  std::atomic<uint64_t> refused_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace deut::testing

#endif  // INTEGRATION_TESTS_KILL_LOAD_H_
