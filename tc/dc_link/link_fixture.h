// LinkTest: the fixture of tests of the link as the TC sees it: a harness, and queries of the DC's state.
// Thread-safety: the test's thread.
#ifndef TC_DC_LINK_LINK_FIXTURE_H_
#define TC_DC_LINK_LINK_FIXTURE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "tc/dc_link/dc_link.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/dc_link/link_harness.h"

namespace deut::tc {

class LinkTest : public ::testing::Test {
 protected:
  // Returns "(absent)" for a key that does not exist, so that a test can tell that from an error.
  static std::string Text(const Result<std::optional<std::string>>& read) {
    if (!read.ok()) return read.status().ToString();
    return read->value_or("(absent)");
  }

  // Starts a TC that has met its DC and serves.
  void Begin() {
    h_.dc.Start();
    h_.StartTc();
    ASSERT_TRUE(h_.WaitCaughtUp().ok());
  }
  bool Within(Duration limit, const std::function<bool()>& condition) { return h_.dc.WaitUntil(condition, limit); }
  bool Eventually(const std::function<bool()>& condition) { return h_.dc.WaitUntil(condition); }

  // Returns the timestamps of the updates that reached the DC, in order of arrival.
  std::vector<uint64_t> SeenUpdates() {
    std::vector<uint64_t> timestamps;
    for (const auto& seen : h_.dc.seen()) {
      if (seen.kind != LogEntryKind::kLowWater) timestamps.push_back(seen.timestamp.value);
    }
    return timestamps;
  }
  size_t SeenLowWaters() { return h_.dc.seen().size() - SeenUpdates().size(); }
  // True if a low-water record above the timestamp has reached the DC.
  bool Covered(uint64_t timestamp) {
    for (const auto& seen : h_.dc.seen()) {
      if (seen.kind == LogEntryKind::kLowWater && seen.timestamp.value > timestamp) return true;
    }
    return false;
  }

  // True if reads go to the present incarnation of the DC.
  bool Serves() {
    const DcLinkStatus status = h_.link->status();
    return status.gate_open && status.peer.incarnation == h_.dc.incarnation();
  }
  // Expects that the link has refused for good, with this code and text.
  void ExpectRefused(ErrorCode code, const std::string& text) {
    ASSERT_TRUE(Eventually([&] { return !h_.fatal().empty() || Serves(); }));
    ASSERT_FALSE(h_.fatal().empty()) << "it serves: " << h_.link->status().state;
    EXPECT_EQ(h_.fatal().front().code(), code);
    EXPECT_THAT(h_.fatal().front().ToString(), ::testing::HasSubstr(text));
    EXPECT_EQ(h_.WaitCaughtUp().code(), code) << "or the first error, had it served";
    EXPECT_EQ(h_.Read("a").status().code(), code);
  }

  // Counters for observers of the DC. These are called until the harness ends, which is after the test's body.
  std::atomic<int>& NewCounter() { return counters_.emplace_back(0); }

  std::deque<std::atomic<int>> counters_;
  LinkHarness h_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_LINK_FIXTURE_H_
