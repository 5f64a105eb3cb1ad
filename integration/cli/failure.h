// How the programs of this folder tell a failure on the standard error output: what, and what to do about it.
#ifndef INTEGRATION_CLI_FAILURE_H_
#define INTEGRATION_CLI_FAILURE_H_

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace deut::cli {

enum class FailureKind : uint8_t {
  kRun,    // the store, or the machine
  kUsage,  // flags or words are wrong
};

// One line, "PROGRAM: CODE: message", and mostly a second with advice; each with its end.
std::string FailureText(std::string_view program, const Status& status, FailureKind kind);

}  // namespace deut::cli

#endif  // INTEGRATION_CLI_FAILURE_H_
