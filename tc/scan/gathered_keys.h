// GatheredKeys: the keys that the TC has updates of, in the gathered part of a scan that is not delivered yet (S4, S5).
// They are copies, distinct and in scan order.
// Thread-safety: one thread at a time. Ownership: owns the texts of the keys and values.
#ifndef TC_SCAN_GATHERED_KEYS_H_
#define TC_SCAN_GATHERED_KEYS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "protocol/data_component.h"
#include "tc/scan/byte_arena.h"
#include "tc/scan/scan_cursor.h"

namespace deut::tc {

// A key, and what its chain shows when it is merged.
struct GatheredKey {
  enum class Kind : uint8_t { kValue, kTombstone, kInLog, kAskDc };
  std::string_view key;
  Kind kind = Kind::kAskDc;
  bool may_be_removed = true;  // false: none of its updates is a removal
  uint64_t hash = 0;           // set when its chain is looked at
  Version version;
  std::string_view value;
  Lsn place;  // for kInLog, as value_bytes
  uint32_t value_bytes = 0;
  DataRequest* reask = nullptr;
};

struct GatheredKeys {
  // Keys that are not merged yet.
  size_t ahead() const { return keys.size() - next; }
  // Bytes of memory that the keys and their texts take.
  size_t capacity_bytes() const { return texts.capacity() + keys.capacity() * sizeof(GatheredKey); }

  // Returns the end of the keys that an answer of the DC up to `covered` covers.
  size_t EndWithin(const ScanCursor& cursor, std::string_view covered) const {
    const auto within = [&](const GatheredKey& gathered) {
      return cursor.ascending() ? gathered.key < covered : gathered.key >= covered;
    };
    const auto begin = keys.begin() + static_cast<ptrdiff_t>(next);
    return static_cast<size_t>(std::partition_point(begin, keys.end(), within) - keys.begin());
  }
  // Returns how many of the keys ahead may remove a record of the DC.
  size_t CountRemoving() const {
    return static_cast<size_t>(std::count_if(keys.begin() + static_cast<ptrdiff_t>(next), keys.end(),
                                             [](const GatheredKey& gathered) { return gathered.may_be_removed; }));
  }

  void Clear() {
    keys.clear();
    texts.Clear();
    next = 0;
  }
  // Drops the merged keys.
  void DropMerged() {
    keys.erase(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(next));
    next = 0;
    ByteArena moved;
    for (GatheredKey& rest : keys) rest.key = moved.Copy(rest.key);
    texts = std::move(moved);
  }

  std::vector<GatheredKey> keys;  // those before `next` are merged
  size_t next = 0;
  ByteArena texts;   // of the keys
  ByteArena values;  // of the keys that are being merged
};

}  // namespace deut::tc

#endif  // TC_SCAN_GATHERED_KEYS_H_
