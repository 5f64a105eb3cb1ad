#include "integration/product/cli/failure.h"

#include "common/base/concat.h"

namespace deut::cli {

std::string FailureText(std::string_view program, const Status& status, FailureKind kind) {
  std::string text = Concat(program, ": ", status.ToString());
  if (!text.ends_with('\n')) text += '\n';
  if (kind == FailureKind::kUsage) {
    if (text.find("--help") == std::string::npos) ConcatTo(&text, "      (", program, " --help lists the flags)\n");
    return text;
  }
  const std::string_view advice = ErrorCodeAdvice(status.code());
  if (!advice.empty()) ConcatTo(&text, "      (", advice, ")\n");
  return text;
}

}  // namespace deut::cli
