// Keys and values as the command line shows and takes them. Any bytes can be shown, and what is shown can be given again.
//   escaped  printable ASCII as it is; \\ \t \n \r; every other byte as \xNN
//   hex      two hexadecimal digits a byte
// Thread-safety: pure functions.
#ifndef INTEGRATION_CLI_TEXT_H_
#define INTEGRATION_CLI_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace deut::cli {

enum class TextForm : uint8_t { kEscaped, kHex };

std::string Show(std::string_view bytes, TextForm form);
// INVALID_ARGUMENT that says what is wrong where. `what` ("key", "value") is for the message.
Result<std::string> Take(std::string_view what, std::string_view text, TextForm form);

}  // namespace deut::cli

#endif  // INTEGRATION_CLI_TEXT_H_
