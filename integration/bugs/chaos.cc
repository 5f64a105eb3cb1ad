#include "integration/bugs/chaos.h"

#include <atomic>
#include <string_view>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"

namespace deut::bugs {

#ifdef DEUT_TEST_POINTS
namespace {

uint64_t Hash(std::string_view name, uint64_t seed) {
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return Mix64(seed);
}

Random& ThreadRandom() {
  static std::atomic<uint64_t> threads{0};
  thread_local Random random(threads.fetch_add(1, std::memory_order_relaxed) * 1000);
  return random;
}

// A thread that has spent this much of a round in pauses makes few more, because its work would otherwise never end:
// a collector passes some points once for every record.
constexpr Duration kMaxPausePerRound = milliseconds(200);

std::atomic<uint64_t> rounds{0};

void Pause(Duration duration) {
  thread_local uint64_t round = 0;
  thread_local Duration paused{0};
  if (const uint64_t now = rounds.load(std::memory_order_relaxed); now != round) {
    round = now;
    paused = Duration(0);
  }
  if (paused > kMaxPausePerRound && !ThreadRandom().OneIn(64)) return;
  paused += duration;
  Runtime& runtime = RealRuntime();
  runtime.SleepUntil(runtime.Now() + duration);
}

// A round's disturbance, drawn from its seed.
struct Disturbance {
  explicit Disturbance(uint64_t from) : seed(from) {
    Random random(seed);
    // Few names hard, many names a little, or many hard: some bugs need threads to stop at two or three points at
    // once.
    const uint64_t way = random.Below(5);
    const bool hard = way < 2 || way == 4;
    one_in_names = way < 2 ? 15 + random.Below(20) : way < 4 ? 3 + random.Below(10) : 2 + random.Below(5);
    one_in_passes = hard ? 1 + random.Below(4) : 2 + random.Below(30);
    longest = microseconds((hard ? 200 : 50) << random.Below(6));
    rarely_one_in = 64 << random.Below(6);
    lost_one_in_names = 2 + random.Below(8);
    lost_one_in = 2 + random.Below(30);
  }

  void Pass(std::string_view name) const {
    Random& random = ThreadRandom();
    if (Hash(name, seed) % one_in_names == 0 && random.OneIn(one_in_passes)) {
      Pause(microseconds(random.Below(static_cast<uint64_t>(duration_cast<microseconds>(longest).count()))));
    } else if (random.OneIn(rarely_one_in)) {
      if (random.OneIn(2)) {
        RealRuntime().Yield();
      } else {
        Pause(microseconds(random.Below(100)));
      }
    }
  }
  bool Loses(std::string_view name) const {
    return Hash(name, seed + 1) % lost_one_in_names == 0 && ThreadRandom().OneIn(lost_one_in);
  }

  uint64_t seed, one_in_names, one_in_passes, rarely_one_in, lost_one_in_names, lost_one_in;
  Duration longest;
};

}  // namespace

Chaos::Chaos(uint64_t seed) {
  rounds.fetch_add(1, std::memory_order_relaxed);
  if (seed % 4 == 0) return;
  const Disturbance disturbance(seed);
  testing::SetPointHandler([disturbance](std::string_view name) { disturbance.Pass(name); });
  if (seed % 4 != 1) testing::SetCasHandler([disturbance](std::string_view name) { return disturbance.Loses(name); });
}

Chaos::~Chaos() {
  testing::SetPointHandler({});
  testing::SetCasHandler({});
}
#else
Chaos::Chaos(uint64_t) {}
Chaos::~Chaos() = default;
#endif

}  // namespace deut::bugs
