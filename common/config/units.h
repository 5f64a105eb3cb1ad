// Amounts as people write them: bytes ("512MiB", "4096"), durations ("30s", "250us").
// Why not absl::ParseDuration: it also accepts fractions, negative and infinite durations, and shows 90s as "1m30s".
// Amounts of bytes have the same form, and share the code.
// Thread-safety: pure functions. Errors: INVALID_ARGUMENT naming the text and the forms that are accepted.
#ifndef COMMON_CONFIG_UNITS_H_
#define COMMON_CONFIG_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/time.h"

namespace deut {

// Accepts a whole number and B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024), or nothing
// (bytes).
Result<uint64_t> ParseBytes(std::string_view text);
// Accepts a whole number and ns, us, ms, s, m, h; or 0.
Result<Duration> ParseDuration(std::string_view text);

// Formats in the largest unit that leaves a whole number; the parser above reads the result back.
std::string FormatBytes(uint64_t bytes);
std::string FormatDuration(Duration duration);

}  // namespace deut

#endif  // COMMON_CONFIG_UNITS_H_
