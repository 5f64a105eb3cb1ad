// Fuzzes a configuration file and a command line. Either they are refused with INVALID_ARGUMENT, or every field holds
// a value within its limits. An accepted amount is formatted and parsed again, and must be the same.
// The input: lines; those that begin with "--" are the command line, the others the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/config/units.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"

namespace deut {
namespace {

struct Options {
  bool on = false;
  std::string text = "text";
  double ratio = 0.5;
  Duration period = seconds(1);
  std::vector<std::string> names;
  int32_t whole = -1;
  uint16_t port = 7;
  uint64_t memory = 1 << 20;
  int choice = 1;
};

void CheckAmounts(std::string_view text) {
  const Result<uint64_t> bytes = ParseBytes(text);
  if (bytes.ok()) DEUT_CHECK(*ParseBytes(FormatBytes(*bytes)) == *bytes);
  const Result<Duration> duration = ParseDuration(text);
  if (duration.ok()) DEUT_CHECK(*ParseDuration(FormatDuration(*duration)) == *duration);
}

void Play(std::string_view input) {
  std::string file;
  std::vector<std::string> arguments = {"program"};
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size());
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    CheckAmounts(line);
    // No other files exist.
    if (line.starts_with("--") && line.find('\0') == std::string_view::npos) {
      arguments.emplace_back(line);
    } else {
      file.append(line) += '\n';
    }
  }
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  const auto opened = storage->Open("/conf", {.create = true, .writable = true});
  DEUT_CHECK(opened.ok() && (*opened)->Write(0, file.data(), file.size()).ok());
  arguments.insert(arguments.begin() + 1, "--config=/conf");

  Options options;
  FlagSet flags("program", "Fuzzed.");
  flags.Add("on", &options.on, "a bool");
  flags.Add("text", &options.text, "a text");
  flags.Add("ratio", &options.ratio, "a ratio");
  flags.Add("period", &options.period, "a duration");
  flags.Add("names", &options.names, "a list");
  flags.Add("whole", &options.whole, "a whole number", -5, 5);
  flags.Add<uint16_t>("port", &options.port, "a port", 1, 9999);
  flags.AddBytes("memory", &options.memory, "an amount", 1 << 10, 1 << 30);
  flags.AddEnum<int>("choice", &options.choice, {{"one", 1}, {"two", 2}}, "a choice");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const auto rest = flags.Parse(static_cast<int>(argv.size()), argv.data(), *storage);
  if (!rest.ok()) {
    DEUT_CHECK(rest.status() == ErrorCode::kInvalidArgument || rest.status() == ErrorCode::kNotFound);
    DEUT_CHECK(!rest.status().message().empty());
  }
  DEUT_CHECK(options.whole >= -5 && options.whole <= 5 && options.port >= 1 && options.port <= 9999);
  DEUT_CHECK(options.memory >= 1 << 10 && options.memory <= 1 << 30 && (options.choice == 1 || options.choice == 2));
  DEUT_CHECK(!flags.Help().empty());
  (void)flags.Given();
}

}  // namespace
}  // namespace deut

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  deut::Play({reinterpret_cast<const char*>(data), size});
  return 0;
}
