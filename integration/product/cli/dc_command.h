// The commands of `deut` that examine the directory of a stopped data component, without opening a store:
//   dc verify DIR
//   dc inspect DIR [checkpoint [N] | segment N | page ID | table ID]
// dc/verify/verify.h and dc/verify/inspect.h state what these commands check and show.
// Thread-safety: free functions.
#ifndef INTEGRATION_PRODUCT_CLI_DC_COMMAND_H_
#define INTEGRATION_PRODUCT_CLI_DC_COMMAND_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "integration/product/cli/command.h"
#include "integration/product/cli/text.h"

namespace deut::cli {

// True if the words name a command of this file, whether or not they are well-formed.
bool IsDcCommand(const std::vector<std::string>& words);
// INVALID_ARGUMENT names the usage that was probably meant.
Status CheckDcCommand(const std::vector<std::string>& words);

// CORRUPTION: the directory was examined, and something in it is damaged. Any other error: it cannot be examined.
// REQUIRES: CheckDcCommand(words) is OK.
Status RunDcCommand(Storage& storage, Runtime& runtime, const std::vector<std::string>& words, TextForm form,
                    const Output& out);

// Returns lines in the form of CommandHelp.
std::string DcCommandHelp();

}  // namespace deut::cli

#endif  // INTEGRATION_PRODUCT_CLI_DC_COMMAND_H_
