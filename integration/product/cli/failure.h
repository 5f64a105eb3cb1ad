// How the programs of this folder report a failure on the standard error output: the failure, and advice about it.
// Thread-safety: pure function.
#ifndef INTEGRATION_PRODUCT_CLI_FAILURE_H_
#define INTEGRATION_PRODUCT_CLI_FAILURE_H_

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace deut::cli {

enum class FailureKind : uint8_t {
  kRun,    // the store or the machine failed
  kUsage,  // flags or words are wrong
};

// Returns one line, "PROGRAM: CODE: message", and in most cases a second line with advice. Each line ends with a
// newline.
std::string FailureText(std::string_view program, const Status& status, FailureKind kind);

}  // namespace deut::cli

#endif  // INTEGRATION_PRODUCT_CLI_FAILURE_H_
