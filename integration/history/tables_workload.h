// TablesWorkload: tables that are created, used and dropped by all threads at once, under few names (rule T1).
//
// A name's table has the states: made -> being dropped, by one or several -> dropped -> the next one is made, by whoever comes by when nobody
//   is dropping any more. A table whose drop has an unknown outcome is left alone, and its name too. Threads also go on with tables that
//   were dropped.
// Conditions of its own: only one drop of a table succeeds; a table that nobody else drops is there to be dropped; its name is free afterwards.
// Thread-safety: as Workload.
#ifndef INTEGRATION_HISTORY_TABLES_WORKLOAD_H_
#define INTEGRATION_HISTORY_TABLES_WORKLOAD_H_

#include <array>
#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "integration/history/recorder.h"
#include "integration/history/workloads.h"

namespace deut::history {

class TablesWorkload final : public Workload {
 public:
  TablesWorkload(TableId table, Durability durability, Duration patience);

  Status Load(RecordedClient& client) override;
  Status Step(RecordedClient& client, Random& random) override;
  Status ReadAll(RecordedClient& client) override;

 private:
  static constexpr size_t kNames = 3;
  struct Named {
    std::string name;
    TableId table;     // the newest
    TableId previous;  // dropped
    bool there = false;
    bool making = false;
    uint32_t droppers = 0;
    uint64_t drops_begun = 0;
    uint64_t lost_names = 0;
  };

  Status Use(RecordedClient& client, Random& random);
  Status Operate(RecordedTransaction& t, TableId table, Random& random) const;
  Status Drop(RecordedClient& client, Random& random, size_t which);
  Status DropOnce(RecordedClient& client, size_t which);
  Status Make(RecordedClient& client, size_t which);
  static void GiveUpName(Named& named);

  const TableId first_;  // there from the beginning, never dropped
  const Durability durability_;
  const Duration patience_;
  Mutex mutex_;
  std::array<Named, kNames> names_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_TABLES_WORKLOAD_H_
