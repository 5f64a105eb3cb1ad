// FlagSet: the options of one program, from its command line and a file. There is no global state: main() makes a
// FlagSet, binds each name to a field of an Options struct, and parses.
//
//   FlagSet flags("dcd", "Deuteronomy's data component.");
//   flags.Add("data_dir", &options.data_dir, "folder of all its files");
//   flags.AddBytes("memory", &options.memory_bytes, "what it may use, data and garbage together");
//   auto rest = flags.Parse(argc, argv, storage);           // --data_dir=/srv/dc --memory=2GiB --config=/etc/dcd.conf
//   if (flags.text_requested()) ...print flags.RequestedText(), and end
//
// The command line takes --name=value; a bool also --name alone. "--" ends the flags. Parse returns the arguments
// without "--" as operands.
// --config=FILE: lines `name = value`. Empty lines are ignored, and so is the rest of a line after '#' at its start
// or after a blank.
// The command line overrides the file, and the file overrides the defaults, which are the fields' values when added.
// Errors: INVALID_ARGUMENT naming flag (file and line), value and the expected form; for an unknown name also the
//   nearest known one. NOT_FOUND if there is no --config file. After an error some fields may have been set.
// Why not absl::flags: an Abseil flag is a global variable, so all parts of a process share one set of flags.
// absl::ParseCommandLine ends the process at an error; here main() decides the exit status, and tests read the message.
// Abseil's flags have no bounds and no amounts of bytes, and its file of flags is not read through Storage.
// Thread-safety: none. Ownership: the fields outlive the FlagSet.
#ifndef COMMON_CONFIG_FLAGS_H_
#define COMMON_CONFIG_FLAGS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/time.h"

namespace deut {

class FlagSet {
 public:
  FlagSet(std::string program, std::string description);

  // `help` is one sentence: meaning, unit, trade-off.
  void Add(std::string name, bool* field, std::string help);
  void Add(std::string name, std::string* field, std::string help);
  void Add(std::string name, double* field, std::string help);
  void Add(std::string name, Duration* field, std::string help);
  // A comma-separated list; "" is the empty list.
  void Add(std::string name, std::vector<std::string>* field, std::string help);
  // A whole number in [low, high].
  template <typename Number>
    requires(std::is_integral_v<Number> && !std::is_same_v<Number, bool>)
  void Add(std::string name, Number* field, std::string help, Number low = std::numeric_limits<Number>::min(),
           Number high = std::numeric_limits<Number>::max()) {
    if constexpr (std::is_signed_v<Number>) {
      AddSigned(std::move(name), *field, std::move(help), low, high,
                [field](int64_t n) { *field = static_cast<Number>(n); });
    } else {
      AddUnsigned(std::move(name), *field, std::move(help), low, high,
                  [field](uint64_t n) { *field = static_cast<Number>(n); });
    }
  }
  // An amount of bytes ("512MiB") in [low, high].
  void AddBytes(std::string name, uint64_t* field, std::string help, uint64_t low = 0, uint64_t high = UINT64_MAX);
  // The same. Without the flag the field stays empty; `otherwise` says what then holds.
  void AddBytes(std::string name, std::optional<uint64_t>* field, std::string help, std::string otherwise,
                uint64_t low = 0, uint64_t high = UINT64_MAX);
  // One of the named values. REQUIRES: the field's value is among them.
  template <typename Enum>
  void AddEnum(std::string name, Enum* field, const std::vector<std::pair<std::string, Enum>>& values,
               std::string help) {
    std::string choices, shown;
    for (const auto& [text, value] : values) {
      ConcatTo(&choices, choices.empty() ? "" : "|", text);
      if (value == *field) shown = text;
    }
    AddFlag(std::move(name), choices, shown, std::move(help), [field, values, choices](std::string_view text) {
      for (const auto& [known, value] : values) {
        if (known != text) continue;
        *field = value;
        return Status::Ok();
      }
      return DEUT_ERROR(kInvalidArgument, "\"", text, "\" is not one of ", choices);
    });
  }

  // `argv` is as given to main, program name first. Returns the operands. A --config file is read from `storage`.
  Result<std::vector<std::string>> Parse(int argc, const char* const* argv, Storage& storage);

  // True if --help, -h or --version was given, or "help" as the first argument. Parse stops there, and reads no --config
  // file. The program prints the text and ends with success.
  bool text_requested() const { return help_requested_ || version_requested_; }
  // Help(), or the program's name and version.
  std::string RequestedText() const;
  // Lists every flag with its kind, default and meaning.
  std::string Help() const;
  // Returns "name=value" for each flag that was given, with its present value, for the start-up message.
  std::vector<std::string> Given() const;

 private:
  using Setter = std::function<Status(std::string_view text)>;
  enum class Source : uint8_t { kDefault, kFile, kCommandLine };
  struct Flag {
    std::string kind, shown_default, help;
    Setter set;
    bool is_bool = false;
    Source source = Source::kDefault;
    std::string given;
  };

  void AddFlag(std::string name, std::string kind, std::string shown_default, std::string help, Setter set);
  void AddSigned(std::string name, int64_t value, std::string help, int64_t low, int64_t high,
                 std::function<void(int64_t)> set);
  void AddUnsigned(std::string name, uint64_t value, std::string help, uint64_t low, uint64_t high,
                   std::function<void(uint64_t)> set);

  Status ParseFile(const std::string& path, Storage& storage);
  // `where` begins the error message. A flag that a stronger source has set keeps its value.
  Status Set(std::string_view name, std::string_view value, Source source, std::string_view where);
  Status Unknown(std::string_view name, std::string_view where) const;

  const std::string program_, description_;
  std::map<std::string, Flag, std::less<>> flags_;
  bool help_requested_ = false, version_requested_ = false;
};

}  // namespace deut

#endif  // COMMON_CONFIG_FLAGS_H_
