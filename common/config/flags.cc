#include "common/config/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/version.h"
#include "common/config/units.h"
#include "common/io/read_file.h"

namespace deut {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

std::string_view WithoutComment(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
  }
  return line;
}

// Levenshtein distance.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

template <typename Number>
Status ParseWhole(std::string_view text, Number low, Number high, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error == std::errc() && end == text.data() + text.size() && *number >= low && *number <= high)
    return Status::Ok();
  return DEUT_ERROR(kInvalidArgument, "\"", text, "\" is not a whole number from ", low, " to ", high);
}

// Returns a flag's name for a message: as on the command line (`where` is "--"), or as in a file at `where`.
std::string Named(std::string_view where, std::string_view name) {
  return where == "--" ? Concat("--", name) : Concat("\"", name, "\"");
}
std::string_view Place(std::string_view where) { return where == "--" ? "" : where; }

Result<uint64_t> ParseBytesWithin(std::string_view text, uint64_t low, uint64_t high) {
  DEUT_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
  if (bytes < low || bytes > high)
    return DEUT_ERROR(kInvalidArgument, "\"", text, "\" is not from ", FormatBytes(low), " to ", FormatBytes(high));
  return bytes;
}

}  // namespace

FlagSet::FlagSet(std::string program, std::string description)
    : program_(std::move(program)), description_(std::move(description)) {}

void FlagSet::AddFlag(std::string name, std::string kind, std::string shown_default, std::string help, Setter set) {
  DEUT_CHECK(name != "config" && name != "help" && name != "version");
  const bool is_bool = kind == "true|false";
  const bool added = flags_
                         .try_emplace(std::move(name), Flag{.kind = std::move(kind),
                                                            .shown_default = std::move(shown_default),
                                                            .help = std::move(help),
                                                            .set = std::move(set),
                                                            .is_bool = is_bool,
                                                            .given = ""})
                         .second;
  DEUT_CHECK(added);
}

void FlagSet::Add(std::string name, bool* field, std::string help) {
  AddFlag(std::move(name), "true|false", *field ? "true" : "false", std::move(help), [field](std::string_view text) {
    if (text != "true" && text != "false")
      return DEUT_ERROR(kInvalidArgument, "\"", text, "\" is neither true nor false");
    *field = text == "true";
    return Status::Ok();
  });
}

void FlagSet::Add(std::string name, std::string* field, std::string help) {
  AddFlag(std::move(name), "TEXT", *field, std::move(help), [field](std::string_view text) {
    *field = text;
    return Status::Ok();
  });
}

void FlagSet::Add(std::string name, double* field, std::string help) {
  AddFlag(std::move(name), "NUMBER", Concat(*field), std::move(help), [field](std::string_view text) {
    double number;
    if (!absl::SimpleAtod(absl::string_view(text.data(), text.size()), &number) || !std::isfinite(number)) {
      return DEUT_ERROR(kInvalidArgument, "\"", text, "\" is not a number");
    }
    *field = number;
    return Status::Ok();
  });
}

void FlagSet::Add(std::string name, Duration* field, std::string help) {
  AddFlag(std::move(name), "DURATION", FormatDuration(*field), std::move(help), [field](std::string_view text) {
    DEUT_ASSIGN_OR_RETURN(*field, ParseDuration(text));
    return Status::Ok();
  });
}

void FlagSet::Add(std::string name, std::vector<std::string>* field, std::string help) {
  AddFlag(std::move(name), "TEXT,...", absl::StrJoin(*field, ","), std::move(help), [field](std::string_view text) {
    field->clear();
    for (size_t at = 0; !text.empty() && at <= text.size();) {
      const size_t comma = std::min(text.find(',', at), text.size());
      const std::string_view item = Trim(text.substr(at, comma - at));
      if (item.empty()) return DEUT_ERROR(kInvalidArgument, "\"", text, "\" has an empty item");
      field->emplace_back(item);
      at = comma + 1;
    }
    return Status::Ok();
  });
}

void FlagSet::AddBytes(std::string name, uint64_t* field, std::string help, uint64_t low, uint64_t high) {
  AddFlag(std::move(name), "BYTES", FormatBytes(*field), std::move(help), [field, low, high](std::string_view text) {
    DEUT_ASSIGN_OR_RETURN(*field, ParseBytesWithin(text, low, high));
    return Status::Ok();
  });
}

void FlagSet::AddBytes(std::string name, std::optional<uint64_t>* field, std::string help, std::string otherwise,
                       uint64_t low, uint64_t high) {
  AddFlag(std::move(name), "BYTES", field->has_value() ? FormatBytes(**field) : std::move(otherwise), std::move(help),
          [field, low, high](std::string_view text) {
            DEUT_ASSIGN_OR_RETURN(*field, ParseBytesWithin(text, low, high));
            return Status::Ok();
          });
}

void FlagSet::AddSigned(std::string name, int64_t value, std::string help, int64_t low, int64_t high,
                        std::function<void(int64_t)> set) {
  AddFlag(std::move(name), "NUMBER", Concat(value), std::move(help),
          [low, high, set = std::move(set)](std::string_view text) {
            int64_t number = 0;
            DEUT_RETURN_IF_ERROR(ParseWhole(text, low, high, &number));
            set(number);
            return Status::Ok();
          });
}

void FlagSet::AddUnsigned(std::string name, uint64_t value, std::string help, uint64_t low, uint64_t high,
                          std::function<void(uint64_t)> set) {
  AddFlag(std::move(name), "NUMBER", Concat(value), std::move(help),
          [low, high, set = std::move(set)](std::string_view text) {
            uint64_t number = 0;
            DEUT_RETURN_IF_ERROR(ParseWhole(text, low, high, &number));
            set(number);
            return Status::Ok();
          });
}

Status FlagSet::Unknown(std::string_view name, std::string_view where) const {
  std::string_view nearest = "help";
  for (const auto& [known, flag] : flags_) {
    if (Distance(name, known) < Distance(name, nearest)) nearest = known;
  }
  for (const std::string_view known : {"config", "version"}) {
    if (Distance(name, known) < Distance(name, nearest)) nearest = known;
  }
  // If the name resembles no known flag, the message guesses none.
  std::string guess;
  if (Distance(name, nearest) <= std::max<size_t>(2, name.size() / 3))
    guess = Concat("; the nearest is ", Named(where, nearest));
  return DEUT_ERROR(kInvalidArgument, Place(where), "there is no flag ", Named(where, name), guess,
                    " (--help lists all)");
}

Status FlagSet::Set(std::string_view name, std::string_view value, Source source, std::string_view where) {
  const auto found = flags_.find(name);
  if (found == flags_.end()) return Unknown(name, where);
  Flag& flag = found->second;
  // The command line is parsed before the file, so its values are set already when the file names the same flag.
  if (flag.source == source) return DEUT_ERROR(kInvalidArgument, Place(where), Named(where, name), " is given twice");
  if (flag.source == Source::kCommandLine) return Status::Ok();
  const Status status = flag.set(value);
  if (!status.ok()) return DEUT_ERROR(kInvalidArgument, where, name, ": ", status.message());
  flag.source = source;
  flag.given = value;
  return Status::Ok();
}

Status FlagSet::ParseFile(const std::string& path, Storage& storage) {
  DEUT_ASSIGN_OR_RETURN(const std::string content, ReadFile(storage, path));
  size_t number = 0;
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    const std::string_view line = Trim(WithoutComment(std::string_view(content).substr(at, end - at)));
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    const std::string where = Concat(path, ":", number, ": ");
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      return DEUT_ERROR(kInvalidArgument, where, "\"", line, "\" is not of the form name = value");
    DEUT_RETURN_IF_ERROR(Set(Trim(line.substr(0, equals)), Trim(line.substr(equals + 1)), Source::kFile, where));
  }
  return Status::Ok();
}

Result<std::vector<std::string>> FlagSet::Parse(int argc, const char* const* argv, Storage& storage) {
  std::vector<std::string> operands;
  std::string config;
  bool flags_ended = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    // Stops here, so these work also beside a wrong --config file.
    if (!flags_ended) {
      help_requested_ = argument == "--help" || argument == "-h" || (argument == "help" && i == 1);
      version_requested_ = argument == "--version";
      if (text_requested()) return operands;
    }
    if (flags_ended || !argument.starts_with("--")) {
      operands.emplace_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    if (name.empty() && equals == std::string_view::npos) {
      flags_ended = true;
    } else if (equals != std::string_view::npos && name == "config") {
      if (!config.empty()) return DEUT_ERROR(kInvalidArgument, "--config is given twice");
      config = argument.substr(equals + 1);
      if (config.empty()) return DEUT_ERROR(kInvalidArgument, "--config names no file");
    } else if (equals != std::string_view::npos) {
      DEUT_RETURN_IF_ERROR(Set(name, argument.substr(equals + 1), Source::kCommandLine, "--"));
    } else {
      const auto found = flags_.find(name);
      if (found == flags_.end() && name != "config") return Unknown(name, "--");
      if (found == flags_.end() || !found->second.is_bool) {
        return DEUT_ERROR(kInvalidArgument, "--", name, " wants a value: --", name, "=...");
      }
      DEUT_RETURN_IF_ERROR(Set(name, "true", Source::kCommandLine, "--"));
    }
  }
  // The file comes last: a flag that the command line has set keeps its value (see Set).
  if (!config.empty()) {
    const Status parsed = ParseFile(config, storage);
    if (parsed == ErrorCode::kNotFound) return DEUT_ERROR(kNotFound, "--config: ", parsed.message());
    if (!parsed.ok()) return parsed;
  }
  return operands;
}

std::string FlagSet::RequestedText() const {
  return version_requested_ ? Concat(program_, " ", kVersion, "\n") : Help();
}

std::string FlagSet::Help() const {
  std::string text = Concat(description_, "\n\nUsage: ", program_, " [--name=value ...]\n\n");
  for (const auto& [name, flag] : flags_) {
    ConcatTo(&text, "  --", name, "=", flag.kind, "\n      ", flag.help);
    ConcatTo(&text, flag.shown_default.empty() ? "" : Concat(" (default ", flag.shown_default, ")"), "\n");
  }
  ConcatTo(
      &text,
      "  --config=FILE\n      lines \"name = value\" for any of these, '#' begins a comment; the command line wins\n",
      "  --help, -h, help\n      this text\n  --version\n      the program's name and version\n");
  return text;
}

std::vector<std::string> FlagSet::Given() const {
  std::vector<std::string> given;
  for (const auto& [name, flag] : flags_) {
    if (flag.source != Source::kDefault) given.push_back(Concat(name, "=", flag.given));
  }
  return given;
}

}  // namespace deut
