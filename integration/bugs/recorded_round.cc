#include "integration/bugs/recorded_round.h"

#include <optional>
#include <string>
#include <utility>

#include "common/runtime/random.h"
#include "integration/bugs/chaos.h"
#include "integration/power/recorded_run.h"

namespace deut::bugs {
namespace {

constexpr int kJudges = 4;  // more than processors, because a life mostly waits

// Returns a short verdict for an error text of PowerRun.
std::string WordFor(const std::string& wrong) {
  for (const auto& [said, word] : {std::pair{"is damaged", "damaged pages"},
                                   {"cannot be checked", "damaged pages"},
                                   {"refused: ", "does not open"},
                                   {"cannot be read", "error"},
                                   {"is lost", "lost"},
                                   {" lacks ", "lost"},
                                   {"has vanished", "lost"},
                                   {"has risen again", "risen again"},
                                   {"in place of", "wrong value"},
                                   {"should not be there", "wrong value"},
                                   {"timestamp", "timestamps"}}) {
    if (wrong.find(said) != std::string::npos) return word;
  }
  return "wrong";
}

}  // namespace

RoundResult RunRecordedRound(uint64_t seed, Watchdog& watchdog) {
  Random random(seed);
  power::RecordedRunOptions options{.seed = seed,
                                    .threads = static_cast<uint32_t>(random.OneIn(2) ? 1 : random.Between(2, 4)),
                                    .steps = static_cast<uint32_t>(random.Between(60, 240)),
                                    .every = random.Between(1, 4),
                                    .moved = [&watchdog] { watchdog.Moved(); }};
  if (!random.OneIn(3)) options.sizes.drawn_from = random.Next();
  power::RecordedRun recorded(options);
  RoundResult result;
  std::string wrong;
  {
    std::optional<Chaos> chaos;
    if (random.OneIn(2)) chaos.emplace(random.Next());
    wrong = recorded.Record();
  }
  watchdog.Moved();
  if (wrong.empty()) {
    wrong = recorded.JudgeAll(kJudges, [&](const power::RecordedRun::Verdict& verdict) {
      watchdog.Moved();
      result.committed += verdict.run->oracle().committed();
    });
  }
  if (wrong.empty()) return result;
  result.verdict = WordFor(wrong);
  result.details = std::move(wrong);
  return result;
}

}  // namespace deut::bugs
