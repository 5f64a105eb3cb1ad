// Any bytes, once shown, can be taken back unchanged. Any input text is either refused, or shown and taken back
// unchanged.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status.h"
#include "integration/product/cli/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using deut::cli::DecodeText;
  using deut::cli::EncodeText;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const auto form : {deut::cli::TextForm::kEscaped, deut::cli::TextForm::kHex}) {
    const deut::Result<std::string> shown = DecodeText("key", EncodeText(input, form), form);
    DEUT_CHECK(shown.ok() && *shown == input);
    const deut::Result<std::string> taken = DecodeText("key", input, form);
    if (!taken.ok()) {
      DEUT_CHECK(taken.status() == deut::ErrorCode::kInvalidArgument);
      continue;
    }
    const deut::Result<std::string> again = DecodeText("key", EncodeText(*taken, form), form);
    DEUT_CHECK(again.ok() && *again == *taken);
  }
  return 0;
}
