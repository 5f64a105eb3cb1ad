// Hooks by which tests steer latch-free code. They exist only in test configurations; release builds contain none of
// them.
//
//   DEUT_POINT("bwtree.update.before_cas")   a named point between a load and its compare-and-swap. Under
//                                            DEUT_TEST_POINTS a test may stop a thread there, order threads, or count
//                                            passes (test_points.cc).
//   DEUT_CAS_FAILS("bwtree.update.cas")      true if the test wants the next compare-and-swap of that name to count
//                                            as lost, without an attempt. Always false outside tests. Also before
//                                            a call of the system that a test wants to count as refused.
//   DEUT_STEP("R1.check")                    true, except if this step of a rule is to be left out (the seeded bug of
//                                            that rule). Only under DEUT_MUTATIONS, by the environment variable
//                                            DEUT_OMIT=name; constant true elsewhere. It guards the step:
//                                            `if (DEUT_STEP("R1.check")) Check();`
//   DEUT_OMITTED("R1.check")                 the opposite, where something else happens in place of the step.
#ifndef COMMON_TESTING_TEST_POINTS_H_
#define COMMON_TESTING_TEST_POINTS_H_

#include <functional>
#include <string>
#include <string_view>

#ifdef DEUT_TEST_POINTS
#define DEUT_POINT(name) ::deut::testing::PassPoint(name)
#define DEUT_CAS_FAILS(name) ::deut::testing::CasFails(name)
#else
#define DEUT_POINT(name) ((void)0)
#define DEUT_CAS_FAILS(name) false
#endif

#ifdef DEUT_MUTATIONS
#define DEUT_OMITTED(name) ::deut::testing::Omitted(name)
#define DEUT_STEP(name) (!::deut::testing::Omitted(name))
#else
// Literals, because the compiler takes a macro's literal for configuration and does not warn of dead code behind it.
#define DEUT_OMITTED(name) false
#define DEUT_STEP(name) true
#endif

namespace deut::testing {

// True if the environment variable DEUT_OMIT names this step; it is read once, at the first call.
bool Omitted(std::string_view name);

#ifdef DEUT_TEST_POINTS
void PassPoint(const char* name);
bool CasFails(const char* name);

// Calls `handler` on every pass of any point, on the passing thread, until it is cleared (empty function). Set it and
// clear it while no other thread passes points, or use a handler that tolerates late calls.
void SetPointHandler(std::function<void(std::string_view name)> handler);
// Sets the handler that decides every DEUT_CAS_FAILS; same rules.
void SetCasHandler(std::function<bool(std::string_view name)> handler);
#endif

}  // namespace deut::testing

#endif  // COMMON_TESTING_TEST_POINTS_H_
