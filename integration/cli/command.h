// The commands of `deut`: parsed from words, run on a client, answered as text.
//   put KEY VALUE | get KEY | delete KEY | scan | tables list | tables create NAME | tables drop NAME | health | status
// What a command prints was acknowledged when it is printed, but for long scans (ScanText in command.cc).
// Thread-safety: free functions.
#ifndef INTEGRATION_CLI_COMMAND_H_
#define INTEGRATION_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/cli/text.h"
#include "tc/client/client.h"

namespace deut::cli {

// What flags say.
struct CommandOptions {
  std::string table = "default";
  TextForm form = TextForm::kEscaped;
  // Of `scan`, as given.
  std::string low;
  std::string high;
  uint64_t limit = 0;
  bool reverse = false;
  Duration deadline = seconds(30);
};

// Where output goes: whole lines.
using Output = std::function<void(std::string_view text)>;

// Checks the words before anything is connected: INVALID_ARGUMENT that shows what is meant.
Status CheckCommand(const std::vector<std::string>& words);

// REQUIRES: CheckCommand(words) is OK. `out` is what was asked for, `notes` remarks for a person.
Status RunCommand(Client& client, const std::vector<std::string>& words, const CommandOptions& options,
                  const Output& out, const Output& notes);

// One line for each command.
std::string CommandHelp();

}  // namespace deut::cli

#endif  // INTEGRATION_CLI_COMMAND_H_
