// Chaos makes threads of latch-free code collide, through the hooks that stand beside every compare-and-swap of the
// project (DEUT_POINT, DEUT_CAS_FAILS). It knows no point by its name. From its seed, each round draws a few names at
// which threads pause often and long, and a few whose compare-and-swaps sometimes fail. At all other names, threads
// pause briefly now and then. Some rounds have no chaos.
// In builds without test points it does nothing.
// Thread-safety: one thread creates and destroys it; other threads may pass points meanwhile.
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
