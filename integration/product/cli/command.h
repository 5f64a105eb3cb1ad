// The commands of `deut`: parses them from words, runs them on a client, and prints the answer as text.
//   put KEY VALUE | get KEY | delete KEY | scan | tables list | tables create NAME | tables drop NAME | health | status
// The results of a command are acknowledged before they are printed, except those of long scans (ScanText in
// command.cc).
// Thread-safety: free functions.
#ifndef INTEGRATION_PRODUCT_CLI_COMMAND_H_
#define INTEGRATION_PRODUCT_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/product/cli/text.h"
#include "tc/client/client.h"

namespace deut::cli {

// Values of the command-line flags.
struct CommandOptions {
  std::string table = "default";
  TextForm form = TextForm::kEscaped;
  // The bounds of `scan`, as given on the command line.
  std::string low;
  std::string high;
  uint64_t limit = 0;
  bool reverse = false;
  Duration deadline = seconds(30);
  TableOptions of_table;  // of `tables create`
};

// Receives output, in whole lines.
using Output = std::function<void(std::string_view text)>;

// Checks the words before the program connects. INVALID_ARGUMENT names the usage that was probably meant.
Status CheckCommand(const std::vector<std::string>& words);

// REQUIRES: CheckCommand(words) is OK. `out` receives the result, `notes` receives remarks for a person.
Status RunCommand(Client& client, const std::vector<std::string>& words, const CommandOptions& options,
                  const Output& out, const Output& notes);

// Returns one line for each command.
std::string CommandHelp();

}  // namespace deut::cli

#endif  // INTEGRATION_PRODUCT_CLI_COMMAND_H_
