// GroupOracle: the states that a store may have after kills. Each write is one transaction: it puts one value to all
// keys of a group, or removes all of them. Many threads write the same groups. The oracle remembers for each group
// the acknowledged write with the highest commit timestamp, and every write of unknown outcome. It judges the values
// that a reader finds:
//   - All keys of a group hold the same value (atomicity).
//   - The value is of the newest acknowledged write or of an unknown one. A refused write must not be there, nor an
//     older one.
// An unknown write that a reader found counts as known from then on: it may not vanish again.
// Thread-safety: any thread may call all methods, but Judge only while no writer runs.
#ifndef INTEGRATION_TESTS_GROUP_ORACLE_H_
#define INTEGRATION_TESTS_GROUP_ORACLE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut::testing {

class GroupOracle {
 public:
  explicit GroupOracle(uint32_t groups) : mutex_(RealRuntime()), states_(groups) {}

  // Return a number for a write that no other write has, and that tells whether the write removes.
  uint64_t NextWrite() { return 2 * (writes_.fetch_add(1) + 1); }
  uint64_t NextRemoval() { return NextWrite() + 1; }

  // Returns the value of each of the group's keys after the write. The value names the write, and shows if it is
  // torn: its end depends on its beginning.
  static std::optional<std::string> ValueOf(uint32_t group, uint64_t write) {
    if (write == 0 || write % 2 != 0) return std::nullopt;
    std::string value = Concat("group ", group, " write ", write, " ");
    for (uint64_t word = write; value.size() < 100; ++word) ConcatTo(&value, absl::Hex(Mix64(word), absl::kZeroPad16));
    return value;
  }

  void Acknowledge(uint32_t group, Timestamp timestamp, uint64_t write) {
    MutexLock lock(mutex_);
    State& state = states_[group];
    if (timestamp > state.newest) state = {timestamp, write, std::move(state.unknown)};
    acknowledged_.fetch_add(1);
  }
  void SetUnknown(uint32_t group, uint64_t write) {
    MutexLock lock(mutex_);
    states_[group].unknown.insert(write);
    unknown_.fetch_add(1);
  }

  uint64_t acknowledged() const { return acknowledged_.load(); }
  uint64_t unknown() const { return unknown_.load(); }

  // Returns the error in a group's values, key by key, as read by a transaction of `timestamp`; "" if there is none.
  // REQUIRES: `values` is not empty.
  std::string Judge(uint32_t group, Timestamp timestamp, std::span<const std::optional<std::string>> values) {
    MutexLock lock(mutex_);
    State& state = states_[group];
    const std::optional<std::string>& value = values.front();
    const auto other = std::find_if(values.begin(), values.end(), [&](const auto& each) { return each != value; });
    if (other != values.end()) {
      return Concat("group ", group, " is torn: ", Shown(value), " and, at key ", other - values.begin(), ", ",
                    Shown(*other));
    }
    if (value == ValueOf(group, state.write)) return "";
    for (const uint64_t write : state.unknown) {
      if (value != ValueOf(group, write)) continue;
      state.newest = timestamp;
      state.write = write;
      state.unknown.erase(write);
      return "";
    }
    return Concat("group ", group, " holds ", Shown(value), "; the newest acknowledged is write ", state.write, " at ",
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

#endif  // INTEGRATION_TESTS_GROUP_ORACLE_H_
