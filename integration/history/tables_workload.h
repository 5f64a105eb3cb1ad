// TablesWorkload: all threads create, use and drop tables at once, under few names (rule T1).
//
// States of a name's table: made -> being dropped by one or several threads -> dropped. When no thread is dropping
// any more, the next thread that chooses the name makes a new table. After a drop of unknown outcome, the workload
// uses neither that table nor its name again. Threads also keep using dropped tables.
// Conditions: only one drop of a table succeeds; a table that only one thread drops is found; afterwards its name is
// free.
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
    TableId table;     // the newest table of this name
    TableId previous;  // the table before it, dropped
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
  static void RetireName(Named& named);

  const TableId first_;  // there from the beginning, never dropped
  const Durability durability_;
  const Duration patience_;
  Mutex mutex_;
  std::array<Named, kNames> names_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_TABLES_WORKLOAD_H_
