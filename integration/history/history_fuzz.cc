// Any text is either refused as a history, or it survives writing and reading unchanged, and both checkers reach a
// verdict on it.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status.h"
#include "integration/history/cycle_checker.h"
#include "integration/history/history.h"
#include "integration/history/history_edn.h"
#include "integration/history/history_text.h"
#include "integration/history/timestamp_checker.h"

namespace deut::history {
namespace {

std::string Written(const History& history) {
  std::ostringstream out;
  WriteHistory(history, out);
  return out.str();
}

void Play(std::string_view text) {
  const Result<History> history = ParseHistory(text);
  if (!history.ok()) return;
  const std::string written = Written(*history);
  const Result<History> again = ParseHistory(written);
  DEUT_CHECK(again.ok());
  DEUT_CHECK(Written(*again) == written);
  const Report timestamps = CheckTimestamps(*history);
  const Report cycles = CheckCycles(*history);
  DEUT_CHECK(timestamps.ok() == (timestamps.verdict() == "ok") && cycles.ok() == (cycles.verdict() == "ok"));
  DEUT_CHECK(!timestamps.ToText().empty() && !cycles.ToText().empty());
  std::ostringstream edn;
  (void)WriteEdn(*history, edn).ok();  // may refuse, but must return
}

}  // namespace
}  // namespace deut::history

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  deut::history::Play({reinterpret_cast<const char*>(data), size});
  return 0;
}
