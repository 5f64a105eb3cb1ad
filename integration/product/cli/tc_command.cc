#include "integration/product/cli/tc_command.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "common/base/concat.h"
#include "tc/verify/dump.h"
#include "tc/verify/verify.h"

namespace deut::cli {
namespace {

constexpr std::string_view kVerifyUsage = "deut tc verify DIR";
constexpr std::string_view kDumpUsage = "deut [--from=LSN] [--to=LSN] [--table=ID] [--key=KEY] tc dump DIR";

std::optional<TableId> Table(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return TableId(number);
}

// Returns the value as text if all of it is printable, otherwise as hexadecimal digits.
std::string ShowValue(std::string_view value, TextForm form) {
  const bool printable = std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
  if (form == TextForm::kEscaped && printable) return Concat("\"", value, "\"");
  return Concat("0x", EncodeText(value, TextForm::kHex));
}

Status RunDump(Storage& storage, const std::string& directory, const TcCommandOptions& options, const Output& out) {
  tc::DumpRequest request;
  request.from = Lsn(options.from);
  if (options.to != 0) request.to = Lsn(options.to);
  if (!options.table.empty()) request.table = Table(options.table);
  if (!options.key.empty()) {
    DEUT_ASSIGN_OR_RETURN(request.key, DecodeText("--key", options.key, options.form));
  }
  request.show_key = [&](std::string_view key) { return EncodeText(key, options.form); };
  request.show_value = [&](std::string_view value) { return ShowValue(value, options.form); };
  return tc::DumpLog(storage, directory, request, out);
}

}  // namespace

bool IsTcCommand(const std::vector<std::string>& words) { return !words.empty() && words[0] == "tc"; }

Status CheckTcCommand(const std::vector<std::string>& words, const TcCommandOptions& options) {
  const std::string command = words.size() > 1 ? words[1] : "";
  if (command == "verify") {
    if (words.size() == 3) return Status::Ok();
    return DEUT_ERROR(kInvalidArgument, "usage: ", kVerifyUsage);
  }
  if (command == "dump") {
    if (words.size() != 3) return DEUT_ERROR(kInvalidArgument, "usage: ", kDumpUsage);
    if (!options.table.empty() && !Table(options.table).has_value()) {
      return DEUT_ERROR(kInvalidArgument, "--table: \"", EncodeText(options.table, TextForm::kEscaped),
                        "\" is no table id (a log knows no names; `deut tables list` shows both)");
    }
    return options.key.empty() ? Status::Ok() : DecodeText("--key", options.key, options.form).status();
  }
  return DEUT_ERROR(kInvalidArgument, "usage, one of:\n  ", kVerifyUsage, "\n  ", kDumpUsage);
}

Status RunTcCommand(Storage& storage, const std::vector<std::string>& words, const TcCommandOptions& options,
                    const Output& out) {
  if (words[1] == "dump") return RunDump(storage, words[2], options, out);
  DEUT_ASSIGN_OR_RETURN(const tc::LogReport report, tc::VerifyLog(storage, words[2], {}));
  out(tc::ReportText(report));
  if (report.clean()) return Status::Ok();
  return DEUT_ERROR(kCorruption, words[2], " is damaged: see above");
}

std::string TcCommandHelp() {
  return Concat("  ", kVerifyUsage,
                "           checks the log directory of a transaction component that is stopped: every block and\n",
                "                               record, and what they say of each other; where the log ends, and why. "
                "Exit status as\n",
                "                               for dc verify\n", "  ", kDumpUsage, "\n",
                "                               shows its records in order, and where the log ends, and why\n");
}

}  // namespace deut::cli
