// WrittenKeys: the keys that a transaction has written, so that the next attempt can declare them (R11). It is one
// growing buffer, kept from attempt to attempt. It is bounded, because declarations help against starvation and are
// never needed for correctness.
// Thread-safety: none; belongs to the transaction's thread.
#ifndef TC_CLIENT_WRITTEN_KEYS_H_
#define TC_CLIENT_WRITTEN_KEYS_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/base/ids.h"
#include "protocol/limits.h"
#include "protocol/transaction_service.h"

namespace deut {

// Returns whether the operation may write its `key`, which is then worth declaring. (A stamped key differs at every
// attempt.)
inline bool WritesItsKey(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kPut:
    case OperationKind::kInsert:
      return operation.stamp != Stamp::kKey;
    case OperationKind::kUpdate:
    case OperationKind::kRemove:
    case OperationKind::kAdd:
    case OperationKind::kMin:
    case OperationKind::kMax:
    case OperationKind::kCompareAndSet:
      return true;
    case OperationKind::kGet:
    case OperationKind::kScan:
    case OperationKind::kRemoveRange:
      return false;
  }
  return false;
}

class WrittenKeys {
 public:
  // A transaction that writes more keys declares only its first ones.
  static constexpr size_t kMaxKeys = kMaxDeclaredKeys;
  static constexpr size_t kMaxBytes = 128 << 10;

  void Add(TableId table, std::string_view key) {
    if (entries_.size() >= kMaxKeys || bytes_.size() + key.size() > kMaxBytes) return;
    entries_.push_back({table, bytes_.size(), key.size()});
    bytes_.append(key);
  }

  bool empty() const { return entries_.empty(); }

  // Merges the added keys into `declared`, without duplicates. Then this is empty.
  void MoveTo(std::vector<DeclaredKey>* declared) {
    for (const Entry& entry : entries_) {
      if (declared->size() >= kMaxKeys) break;
      declared->push_back({entry.table, bytes_.substr(entry.offset, entry.bytes)});
    }
    entries_.clear();
    bytes_.clear();
    std::sort(declared->begin(), declared->end(), [](const DeclaredKey& a, const DeclaredKey& b) {
      return std::tie(a.table, a.key) < std::tie(b.table, b.key);
    });
    declared->erase(
        std::unique(declared->begin(), declared->end(),
                    [](const DeclaredKey& a, const DeclaredKey& b) { return a.table == b.table && a.key == b.key; }),
        declared->end());
  }

 private:
  struct Entry {
    TableId table;
    size_t offset;
    size_t bytes;
  };
  std::vector<Entry> entries_;
  std::string bytes_;
};

}  // namespace deut

#endif  // TC_CLIENT_WRITTEN_KEYS_H_
