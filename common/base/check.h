// DEUT_CHECK: states an invariant of this program, never a property of bytes from network or disk (those get a
// Status).
// A failed check prints file, line and condition and ends the process, because its state can no longer be proven
// right.
// The Abseil that scripts/setup builds (20220623) has no absl/log/check.h yet.
#ifndef COMMON_BASE_CHECK_H_
#define COMMON_BASE_CHECK_H_

#include <string_view>

namespace deut {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

// Fail-stop on purpose (a failed sync, state that cannot be proven complete): prints the message and exits with
// status 3.
[[noreturn]] void FailStop(std::string_view message);

}  // namespace deut

#define DEUT_CHECK(condition)                              \
  do {                                                     \
    if (!(condition)) [[unlikely]]                         \
      ::deut::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#ifdef NDEBUG
#define DEUT_DCHECK(condition)    \
  do {                            \
    if (false) (void)(condition); \
  } while (false)
#else
#define DEUT_DCHECK(condition) DEUT_CHECK(condition)
#endif

#endif  // COMMON_BASE_CHECK_H_
