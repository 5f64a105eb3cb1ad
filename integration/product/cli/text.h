// The text form of keys and values on the command line. Any bytes can be shown, and any shown text can be given as
// input.
//   escaped  printable ASCII unchanged; \\ \t \n \r; every other byte as \xNN
//   hex      two hexadecimal digits a byte
// Thread-safety: pure functions.
#ifndef INTEGRATION_PRODUCT_CLI_TEXT_H_
#define INTEGRATION_PRODUCT_CLI_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace deut::cli {

enum class TextForm : uint8_t { kEscaped, kHex };

std::string EncodeText(std::string_view bytes, TextForm form);
// INVALID_ARGUMENT names the offending text and its error. The message calls the argument `what` ("key", "value").
Result<std::string> DecodeText(std::string_view what, std::string_view text, TextForm form);

}  // namespace deut::cli

#endif  // INTEGRATION_PRODUCT_CLI_TEXT_H_
