// The check of a folder that a test has damaged, and a look for what it has found. For tests.
#ifndef DC_VERIFY_VERIFY_FIXTURE_H_
#define DC_VERIFY_VERIFY_FIXTURE_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "dc/verify/store_on_disk.h"
#include "dc/verify/verify.h"
#include "gtest/gtest.h"

namespace deut::dc {

inline bool Has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

inline Result<VerifyReport> Verify(StoreOnDisk& store) {
  return VerifyDirectory(store.storage(), RealRuntime(), std::string(StoreOnDisk::kDirectory), {});
}

inline VerifyReport Verified(StoreOnDisk& store) {
  auto report = Verify(store);
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  return report.ok() ? std::move(*report) : VerifyReport();
}

// Returns true if a finding of this kind contains all of `words`.
inline bool Found(const VerifyReport& report, Damaged what, const std::vector<std::string>& words) {
  return std::ranges::any_of(report.findings, [&](const Finding& finding) {
    return finding.what == what &&
           std::ranges::all_of(words, [&](const std::string& word) { return Has(finding.text, word); });
  });
}

}  // namespace deut::dc

#endif  // DC_VERIFY_VERIFY_FIXTURE_H_
