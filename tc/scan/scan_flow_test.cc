#include "tc/scan/scan_flow.h"

#include <deque>

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr uint64_t kBatch = 256 << 10;

// Plays a reader that takes a batch whenever there is one and then works for `work`. Its distance to the sender,
// which reads ahead at `bytes_per_ms`, is `round_trip`. Returns the window at the end, and the time for `total`
// bytes.
struct Played {
  uint64_t window = 0;
  uint64_t most_credit = 0;
  Duration time{0};
};
Played Play(Duration round_trip, Duration work, uint64_t bytes_per_ms, uint64_t total) {
  ScanFlow flow(kBatch);
  MonotonicTime now{seconds(1)};
  const MonotonicTime begin = now;
  MonotonicTime sender = now;
  std::deque<MonotonicTime> arrivals;
  Played played;
  uint64_t sent_credit = 0;
  const auto grant = [&] {
    const uint64_t bytes = flow.BytesToGrant(flow.window());
    if (bytes == 0) return;
    flow.OnGrant(now, bytes);
    sent_credit += bytes;
    played.most_credit = std::max(played.most_credit, flow.granted_untaken_bytes());
    for (; sent_credit >= kBatch; sent_credit -= kBatch) {
      sender = std::max(sender, now + round_trip / 2) + nanoseconds(1'000'000 * kBatch / bytes_per_ms);
      arrivals.push_back(sender + round_trip / 2);
    }
  };
  for (uint64_t taken = 0; taken < total; taken += kBatch) {
    grant();
    const MonotonicTime wanted = now;
    now = std::max(now, arrivals.front());
    arrivals.pop_front();
    flow.OnBatchTaken(now, kBatch, now - wanted);
    grant();
    now += work;
  }
  played.window = flow.window();
  played.time = now - begin;
  return played;
}

TEST(ScanFlowTest, TheWindowHoldsWhatIsTakenInARoundTrip) {
  for (const Duration round_trip :
       {Duration(microseconds(200)), Duration(milliseconds(1)), Duration(milliseconds(10))}) {
    SCOPED_TRACE(round_trip.count());
    const uint64_t total = 400 * kBatch;
    const Played far = Play(round_trip, microseconds(500), 1 << 20, total);
    const Played near = Play(Duration{0}, microseconds(500), 1 << 20, total);
    // It may take longer than with a DC next door by the start, which is some round trips.
    EXPECT_LT(far.time, near.time + 12 * round_trip);
  }
}

TEST(ScanFlowTest, ASlowReaderIsNotSentMoreThanItTakes) {
  const Played played = Play(milliseconds(1), milliseconds(50), 1 << 20, 50 * kBatch);
  EXPECT_EQ(played.window, kBatch);
  EXPECT_LE(played.most_credit, 2 * kBatch);
}

TEST(ScanFlowTest, NeverMoreThanWasTaken) {
  ScanFlow flow(kBatch);
  MonotonicTime now{seconds(1)};
  uint64_t taken = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(flow.window(), std::max(kBatch, taken));
    EXPECT_LE(flow.window(), ScanFlow::kMaxWindow);
    flow.OnGrant(now, flow.window() - std::min(flow.window(), flow.granted_untaken_bytes()));
    now += milliseconds(10);
    while (flow.granted_untaken_bytes() >= kBatch) {
      flow.OnBatchTaken(now, kBatch, milliseconds(10));
      taken += kBatch;
    }
  }
  EXPECT_EQ(flow.window(), ScanFlow::kMaxWindow);
  EXPECT_EQ(flow.round_trip(), milliseconds(10));
}

}  // namespace
}  // namespace deut::tc
