// The commands of `deut` that examine the log directory of a stopped transaction component, without opening a store:
//   tc verify DIR
//   tc dump DIR      --from --to --table --key
// tc/verify/verify.h and tc/verify/dump.h state what these commands check and show.
// Thread-safety: free functions.
#ifndef INTEGRATION_PRODUCT_CLI_TC_COMMAND_H_
#define INTEGRATION_PRODUCT_CLI_TC_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "integration/product/cli/command.h"
#include "integration/product/cli/text.h"

namespace deut::cli {

// Values of the flags of `dump`.
struct TcCommandOptions {
  uint64_t from = 0, to = 0;  // LSNs; to: 0 = to the end of the log
  std::string table;          // a table id; empty = all tables
  std::string key;            // empty = all keys
  TextForm form = TextForm::kEscaped;
};

// True if the words name a command of this file, whether or not they are well-formed.
bool IsTcCommand(const std::vector<std::string>& words);
// INVALID_ARGUMENT names the usage that was probably meant.
Status CheckTcCommand(const std::vector<std::string>& words, const TcCommandOptions& options);

// CORRUPTION: the log was examined, and something in it is damaged. Any other error: it cannot be examined.
// REQUIRES: CheckTcCommand(words, options) is OK.
Status RunTcCommand(Storage& storage, const std::vector<std::string>& words, const TcCommandOptions& options,
                    const Output& out);

// Returns lines in the form of CommandHelp.
std::string TcCommandHelp();

}  // namespace deut::cli

#endif  // INTEGRATION_PRODUCT_CLI_TC_COMMAND_H_
