// Hooks by which tests steer latch-free code. They exist only in test configurations; release builds contain none of them.
//
//   DEUT_POINT("bwtree.update.before_cas")   a named point between a load and its compare-and-swap. Under DEUT_TEST_POINTS a test
//                                            may stop a thread there, order threads, or count passes (test_points.cc).
//   DEUT_CAS_FAILS("bwtree.update.cas")      true when the test wants the next compare-and-swap of that name to be treated as
//                                            lost, without being tried. Always false outside tests.
//   DEUT_OMITTED("R1.check")                 true when this step of a rule is to be left out (the seeded bug of that rule). Only
//                                            under DEUT_MUTATIONS, by the environment variable DEUT_OMIT=name; constant false elsewhere.
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
#else
#define DEUT_OMITTED(name) false
#endif

namespace deut::testing {

// The step named by DEUT_OMIT, read once at the first call.
bool Omitted(std::string_view name);

#ifdef DEUT_TEST_POINTS
void PassPoint(const char* name);
bool CasFails(const char* name);

// Called on every pass of any point, on the passing thread, until cleared (empty function). Set and cleared while no
// other thread passes points, or by a handler that tolerates late calls.
void SetPointHandler(std::function<void(std::string_view name)> handler);
// Decides every DEUT_CAS_FAILS; same rules.
void SetCasHandler(std::function<bool(std::string_view name)> handler);
#endif

}  // namespace deut::testing

#endif  // COMMON_TESTING_TEST_POINTS_H_
