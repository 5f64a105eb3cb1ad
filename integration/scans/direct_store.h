// DirectStore: a TC and a DC in this process, as Embedded has them, with loaded records and access to the DC's record
// operations. Calls of these show what the DC does without transactions. For measurements.
// Thread-safety: any thread may scan and call client(); one thread calls the rest. Ownership: owns everything. Errors
// end the process.
#ifndef INTEGRATION_SCANS_DIRECT_STORE_H_
#define INTEGRATION_SCANS_DIRECT_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/testing/temp_dir.h"
#include "dc/record_ops/record_operations.h"
#include "protocol/data/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/server/transaction_component.h"

namespace deut {

struct DirectStoreOptions {
  uint64_t records = 1'000'000;
  uint32_t value_bytes = 100;
  std::string directory;  // empty = a temporary directory
  IoKind io = IoKind::kAuto;
  tc::TransactionComponentOptions tc = {};  // its directory is set from `directory`
};

class DirectStore {
 public:
  // Loads the records. On return, all of them are in the DC and none in the TC.
  explicit DirectStore(DirectStoreOptions options);
  ~DirectStore();
  DirectStore(const DirectStore&) = delete;
  DirectStore& operator=(const DirectStore&) = delete;

  static std::string KeyOf(uint64_t i);
  static void OrDie(const Status& status, std::string_view what);

  Client& client() { return *client_; }
  TableId table() const { return table_; }
  uint64_t records() const { return options_.records; }
  uint32_t value_bytes() const { return options_.value_bytes; }
  // Waits until the DC has applied everything and the TC keeps none of it.
  void Settle();

  // Count and checksum of the records that a scan has read. The checksum covers every byte.
  struct Seen {
    uint64_t records = 0;
    uint32_t checksum = 0;
    void Add(std::string_view key, std::string_view value);
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  // The following scans read `count` records from number `first` on, each in its own way:
  // from the DC, without a transaction;
  Seen ScanDirectly(uint64_t first, uint64_t count);
  // in a serializable transaction: if the scan fits in a batch, it is a transaction by itself (tc/client/one_scan.h),
  // else interactive;
  Seen ScanSerializably(uint64_t first, uint64_t count);
  // in an interactive transaction: begin, scan, commit;
  Seen ScanInteractively(uint64_t first, uint64_t count);
  // in a transaction without range control. It remembers the version of each record that the DC returned, and reads
  // all of them again from the DC before it commits. This is the minimum for validation by a second scan: it ignores
  // updates that the TC has and the DC has not. `*repeated` counts attempts whose second scan differed; `between`
  // (may be null) is called before each second scan.
  Seen ScanAndValidate(uint64_t first, uint64_t count, uint64_t* repeated, const std::function<void()>& between = {});

 private:
  void Load();
  template <typename Visit>
  void ForEachDirectly(uint64_t first, uint64_t count, const Visit& visit);

  const DirectStoreOptions options_;
  testing::TempDir temporary_;
  const std::unique_ptr<Storage> storage_;
  dc::RecordOperations* operations_ = nullptr;
  std::unique_ptr<InProcessDataComponent> dc_;
  std::unique_ptr<tc::TransactionComponent> tc_;
  std::unique_ptr<Client> client_;
  TableId table_;
};

}  // namespace deut

#endif  // INTEGRATION_SCANS_DIRECT_STORE_H_
