// Strong types for every identity and position of the system, so that none can be passed for another.
// The terms are those of the glossary (common/GLOSSARY.md).
#ifndef COMMON_BASE_IDS_H_
#define COMMON_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <utility>

namespace deut {

template <typename Tag, typename Number>
struct StrongNumber {
  Number value = 0;
  constexpr StrongNumber() = default;
  constexpr explicit StrongNumber(Number v) : value(v) {}
  friend constexpr auto operator<=>(const StrongNumber&, const StrongNumber&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StrongNumber& n) {
    return H::combine(std::move(h), n.value);
  }
};

// The TC draws it from its one counter at a transaction's first operation; it is also the commit time. 0 = older than
// every transaction.
using Timestamp = StrongNumber<struct TimestampTag, uint64_t>;
// Byte position in the TC's redo log.
using Lsn = StrongNumber<struct LsnTag, uint64_t>;
using TableId = StrongNumber<struct TableIdTag, uint32_t>;
using TcId = StrongNumber<struct TcIdTag, uint64_t>;
// The TC raises it durably at every start (X5). Not a reclamation epoch.
using TcEpoch = StrongNumber<struct TcEpochTag, uint64_t>;
using DcId = StrongNumber<struct DcIdTag, uint64_t>;
// One run of a DC process (X3). 0 = none known.
using DcIncarnation = StrongNumber<struct DcIncarnationTag, uint64_t>;

constexpr Timestamp kMaxTimestamp{std::numeric_limits<uint64_t>::max()};

// A version of a record: the larger one wins (X2). The sequence numbers the updates of one transaction, from 1.
struct Version {
  Timestamp timestamp;
  uint32_t sequence = 0;
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

// A place in commit-record order: the commit record's LSN, and the update within the commit. Ship position, applied
// and stable positions have this type. A position (commit, UINT32_MAX) lies behind all updates of that commit.
struct Position {
  Lsn commit;
  uint32_t sequence = 0;
  friend constexpr auto operator<=>(const Position&, const Position&) = default;
};

// Limits of the record model. An error that refuses something larger names the limit.
constexpr uint32_t kMaxKeyBytes = 4096;
constexpr uint32_t kMaxValueBytes = 1 << 20;
constexpr uint32_t kMaxTableNameBytes = 255;

}  // namespace deut

#endif  // COMMON_BASE_IDS_H_
