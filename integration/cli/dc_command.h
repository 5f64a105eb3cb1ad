// The commands of `deut` that look at the directory of a data component that is stopped, without a store:
//   dc verify DIR
//   dc inspect DIR [checkpoint [N] | segment N | page ID | table ID]
// What they check and show: dc/verify/verify.h, dc/verify/inspect.h.
// Thread-safety: free functions.
#ifndef INTEGRATION_CLI_DC_COMMAND_H_
#define INTEGRATION_CLI_DC_COMMAND_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "integration/cli/command.h"
#include "integration/cli/text.h"

namespace deut::cli {

// True if the words are meant for this file's commands, right or wrong.
bool IsDcCommand(const std::vector<std::string>& words);
// INVALID_ARGUMENT that shows what is meant.
Status CheckDcCommand(const std::vector<std::string>& words);

// CORRUPTION: it was looked at, and something is damaged. Every other error: it cannot be looked at.
// REQUIRES: CheckDcCommand(words) is OK.
Status RunDcCommand(Storage& storage, Runtime& runtime, const std::vector<std::string>& words, TextForm form,
                    const Output& out);

// Lines as those of CommandHelp.
std::string DcCommandHelp();

}  // namespace deut::cli

#endif  // INTEGRATION_CLI_DC_COMMAND_H_
