#include "integration/product/cli/dc_command.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "common/base/concat.h"
#include "dc/verify/inspect.h"
#include "dc/verify/verify.h"

namespace deut::cli {
namespace {

constexpr std::string_view kVerifyUsage = "deut dc verify DIR";
constexpr std::string_view kInspectUsage = "deut dc inspect DIR [checkpoint [N] | segment N | page ID | table ID]";

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

// Parses the words after `inspect DIR`. Returns nothing if they are wrong.
std::optional<dc::InspectRequest> ParseRequest(const std::vector<std::string>& words) {
  dc::InspectRequest request;
  if (words.size() == 3) return request;
  const std::string& what = words[3];
  if (what == "checkpoint") {
    request.what = dc::Inspected::kCheckpoint;
    if (words.size() == 4) return request;
  } else if (what == "segment") {
    request.what = dc::Inspected::kSegment;
  } else if (what == "page") {
    request.what = dc::Inspected::kPage;
  } else if (what == "table") {
    request.what = dc::Inspected::kTable;
  } else {
    return std::nullopt;
  }
  if (words.size() != 5) return std::nullopt;
  const std::optional<uint64_t> number = Number(words[4]);
  if (!number.has_value()) return std::nullopt;
  request.number = *number;
  return request;
}

}  // namespace

bool IsDcCommand(const std::vector<std::string>& words) { return !words.empty() && words[0] == "dc"; }

Status CheckDcCommand(const std::vector<std::string>& words) {
  const std::string command = words.size() > 1 ? words[1] : "";
  if (command == "verify") {
    if (words.size() == 3) return Status::Ok();
    return DEUT_ERROR(kInvalidArgument, "usage: ", kVerifyUsage);
  }
  if (command == "inspect") {
    if (words.size() >= 3 && ParseRequest(words).has_value()) return Status::Ok();
    return DEUT_ERROR(kInvalidArgument, "usage: ", kInspectUsage, ", each number above 0");
  }
  return DEUT_ERROR(kInvalidArgument, "usage, one of:\n  ", kVerifyUsage, "\n  ", kInspectUsage);
}

Status RunDcCommand(Storage& storage, Runtime& runtime, const std::vector<std::string>& words, TextForm form,
                    const Output& out) {
  if (words[1] == "inspect") {
    dc::InspectRequest request = *ParseRequest(words);
    request.show = [form](std::string_view bytes) { return EncodeText(bytes, form); };
    return dc::Inspect(storage, runtime, words[2], request, out);
  }
  DEUT_ASSIGN_OR_RETURN(const dc::VerifyReport report, dc::VerifyDirectory(storage, runtime, words[2], {}));
  out(dc::ReportText(report));
  if (report.clean()) return Status::Ok();
  return DEUT_ERROR(kCorruption, words[2], " is damaged: see above");
}

std::string DcCommandHelp() {
  return Concat(
      "  ", kVerifyUsage,
      "           checks the directory of a data component that is stopped: every block and page, the trees\n",
      "                               of both checkpoints; a line for each damage. Exit status: 0 clean, 1 damaged,\n",
      "                               2 cannot be checked (in use, no such directory, of a newer version)\n", "  ",
      kInspectUsage, "\n",
      "                               shows its content: without more words all; or the images that a checkpoint (the "
      "newest) names;\n",
      "                               a segment's parts; a page's parts, bounds and entries; a table's levels\n");
}

}  // namespace deut::cli
