// Chaos: makes the threads of latch-free code meet, by what every compare-and-swap in the project has beside it (DEUT_POINT, DEUT_CAS_FAILS).
// It knows no point by its name: each round draws, from its seed, a few names at which threads pause often and long, and a few whose
// compare-and-swaps are lost now and then; at all others there is a short pause once in a while. Some rounds are without.
// Nothing happens in builds without test points. Thread-safety: one thread; points may be passed meanwhile.
#ifndef INTEGRATION_BUGS_CHAOS_H_
#define INTEGRATION_BUGS_CHAOS_H_

#include <cstdint>

namespace deut::bugs {

class Chaos {
 public:
  explicit Chaos(uint64_t seed);
  ~Chaos();
  Chaos(const Chaos&) = delete;
  Chaos& operator=(const Chaos&) = delete;
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_CHAOS_H_
