// The commands of `deut` that look at the log directory of a transaction component that is stopped, without a store:
//   tc verify DIR
//   tc dump DIR      --from --to --table --key
// What they check and show: tc/verify/verify.h, tc/verify/dump.h.
// Thread-safety: free functions.
#ifndef INTEGRATION_CLI_TC_COMMAND_H_
#define INTEGRATION_CLI_TC_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "integration/cli/command.h"
#include "integration/cli/text.h"

namespace deut::cli {

// What flags say of `dump`.
struct TcCommandOptions {
  uint64_t from = 0, to = 0;  // LSNs; to: 0 = to the end
  std::string table;          // an id; empty = all
  std::string key;            // empty = all
  TextForm form = TextForm::kEscaped;
};

// True if the words are meant for this file's commands, right or wrong.
bool IsTcCommand(const std::vector<std::string>& words);
// INVALID_ARGUMENT that shows what is meant.
Status CheckTcCommand(const std::vector<std::string>& words, const TcCommandOptions& options);

// CORRUPTION: it was looked at, and something is damaged. Every other error: it cannot be looked at.
// REQUIRES: CheckTcCommand(words, options) is OK.
Status RunTcCommand(Storage& storage, const std::vector<std::string>& words, const TcCommandOptions& options,
                    const Output& out);

// Lines as those of CommandHelp.
std::string TcCommandHelp();

}  // namespace deut::cli

#endif  // INTEGRATION_CLI_TC_COMMAND_H_
