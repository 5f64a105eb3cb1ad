// PairOracle: what a store may hold after kills. Each write goes, in one transaction and with one value, to both keys of a pair; many
// threads write the same pairs. The oracle remembers, per pair, the acknowledged write with the highest commit timestamp and every
// write whose outcome nobody knows, and judges what a reader finds:
//   - both keys of a pair hold the same (atomicity);
//   - it is the newest acknowledged write, or one of the unknown ones. A write that was refused must not be there, nor an older one.
// An unknown write that was found is known from then on: it may not vanish again.
// Thread-safety: all methods from any thread; Judge only while no writer is under way.
#ifndef INTEGRATION_TESTS_PAIR_ORACLE_H_
#define INTEGRATION_TESTS_PAIR_ORACLE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut::testing {

// Says what it is, and shows if it is torn: the end depends on the beginning.
inline std::string PairValue(uint32_t pair, uint64_t write) {
  std::string value = Concat("pair ", pair, " write ", write, " ");
  for (uint64_t word = write; value.size() < 100; ++word) ConcatTo(&value, absl::Hex(Mix64(word), absl::kZeroPad16));
  return value;
}

class PairOracle {
 public:
  explicit PairOracle(uint32_t pairs) : mutex_(RealRuntime()), states_(pairs) {}

  // The number of a write is nobody else's.
  uint64_t NextWrite() { return writes_.fetch_add(1) + 1; }

  void Acknowledge(uint32_t pair, Timestamp timestamp, uint64_t write) {
    MutexLock lock(mutex_);
    State& state = states_[pair];
    if (timestamp > state.newest) state = {timestamp, write, std::move(state.unknown)};
    acknowledged_.fetch_add(1);
  }
  void SetUnknown(uint32_t pair, uint64_t write) {
    MutexLock lock(mutex_);
    states_[pair].unknown.insert(write);
    unknown_.fetch_add(1);
  }

  uint64_t acknowledged() const { return acknowledged_.load(); }
  uint64_t unknown() const { return unknown_.load(); }

  // What is wrong with a pair as a transaction of `timestamp` has read it; empty if nothing.
  std::string Judge(uint32_t pair, Timestamp timestamp, const std::optional<std::string>& left,
                    const std::optional<std::string>& right) {
    MutexLock lock(mutex_);
    State& state = states_[pair];
    if (left != right) return Concat("pair ", pair, " is torn: ", Shown(left), " and ", Shown(right));
    if (left == (state.write == 0 ? std::nullopt : std::optional(PairValue(pair, state.write)))) return "";
    for (const uint64_t write : state.unknown) {
      if (left != PairValue(pair, write)) continue;
      state.newest = timestamp;
      state.write = write;
      state.unknown.erase(write);
      return "";
    }
    return Concat("pair ", pair, " holds ", Shown(left), "; the newest acknowledged is write ", state.write, " at ",
                  state.newest.value, ", and none of ", state.unknown.size(), " unknown ones fits");
  }

 private:
  struct State {
    Timestamp newest;
    uint64_t write = 0;  // 0 = none
    std::set<uint64_t> unknown;
  };
  static std::string Shown(const std::optional<std::string>& value) {
    return value.has_value() ? Quoted(*value) : "nothing";
  }

  Mutex mutex_;
  std::vector<State> states_ DEUT_GUARDED_BY(mutex_);
  std::atomic<uint64_t> writes_{0}, acknowledged_{0}, unknown_{0};
};

}  // namespace deut::testing

#endif  // INTEGRATION_TESTS_PAIR_ORACLE_H_
