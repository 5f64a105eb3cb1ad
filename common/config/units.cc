#include "common/config/units.h"

#include <charconv>
#include <span>

#include "common/base/concat.h"

namespace deut {
namespace {

struct Unit {
  std::string_view name;
  uint64_t size;
};

// In each table the units that Format uses are ordered from large to small.
constexpr Unit kByteUnits[] = {
    {"TiB", uint64_t{1} << 40}, {"GiB", uint64_t{1} << 30}, {"MiB", 1 << 20},  {"KiB", 1 << 10}, {"B", 1},
    {"TB", 1'000'000'000'000},  {"GB", 1'000'000'000},      {"MB", 1'000'000}, {"KB", 1000},     {"", 1},
};
constexpr Unit kTimeUnits[] = {
    {"h", uint64_t{3600} * 1'000'000'000},
    {"m", uint64_t{60} * 1'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1000},
    {"ns", 1},
};

// False: `text` has not that form, or the amount is beyond `limit`.
bool Parse(std::string_view text, std::span<const Unit> units, uint64_t limit, uint64_t* amount) {
  uint64_t number;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  const std::string_view name = text.substr(static_cast<size_t>(rest - text.data()));
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    if (number > limit / unit.size) return false;
    *amount = number * unit.size;
    return true;
  }
  return false;
}

std::string Format(uint64_t amount, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (amount >= unit.size && amount % unit.size == 0) return Concat(amount / unit.size, unit.name);
  }
  return "0";
}

}  // namespace

Result<uint64_t> ParseBytes(std::string_view text) {
  uint64_t bytes;
  if (Parse(text, kByteUnits, UINT64_MAX, &bytes)) return bytes;
  return DEUT_ERROR(kInvalidArgument, "\"", text, "\" is not an amount of bytes such as 4096, 64KiB, 512MiB or 2GiB");
}

Result<Duration> ParseDuration(std::string_view text) {
  uint64_t nanos;
  if (text == "0") return Duration(0);
  if (Parse(text, kTimeUnits, INT64_MAX, &nanos)) return Duration(static_cast<int64_t>(nanos));
  return DEUT_ERROR(kInvalidArgument, "\"", text, "\" is not a duration such as 250us, 10ms, 30s, 5m or 1h");
}

std::string FormatBytes(uint64_t bytes) { return Format(bytes, kByteUnits); }

std::string FormatDuration(Duration duration) {
  const std::string text =
      Format(static_cast<uint64_t>(duration < Duration(0) ? -duration.count() : duration.count()), kTimeUnits);
  return duration < Duration(0) ? "-" + text : text;
}

}  // namespace deut
