// DirectStore: a TC and a DC in this process, as Embedded, with records of its own, and with the DC's record operations at hand: what is
// asked of these is what the DC gives without transactions. For measurements.
// Thread-safety: scans and client() from any thread; the rest by one. Ownership: owns everything. Errors end the process.
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
#include "protocol/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/server/transaction_component.h"

namespace deut {

struct DirectStoreOptions {
  uint64_t records = 1'000'000;
  uint32_t value_bytes = 100;
  std::string directory;  // empty = a temporary one
  IoKind io = IoKind::kAuto;
  tc::TransactionComponentOptions tc = {};  // without the directory
};

class DirectStore {
 public:
  // With its records loaded, all of them in the DC and none in the TC.
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
  // Waits until the DC has everything and the TC keeps nothing.
  void Settle();

  // What a scan has read, to be compared: every byte is touched.
  struct Seen {
    uint64_t records = 0;
    uint32_t checksum = 0;
    void Add(std::string_view key, std::string_view value);
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  // `count` records from number `first` on, each in its own way:
  // as the DC gives them;
  Seen ScanDirectly(uint64_t first, uint64_t count);
  // in a serializable transaction: one that is this scan (tc/client/one_scan.h) if it fits in a batch, else an interactive one;
  Seen ScanSerializably(uint64_t first, uint64_t count);
  // in an interactive one: begun, scanned, committed;
  Seen ScanInteractively(uint64_t first, uint64_t count);
  // in a transaction without range control: it remembers which records, of which version, the DC gave, and asks the DC for all of them
  // again before it commits. This is the least that validation by re-scan does: what the TC has and the DC has not is not looked for.
  // `*repeated` counts attempts whose second scan showed something else; `between` (may be null) is called before each second scan.
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
