#include "tc/verify/verify.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "tc/redo_log/recovery.h"
#include "tc/verify/log_directory.h"

namespace deut::tc {

Result<LogReport> VerifyLog(Storage& storage, const std::string& directory, const LogVerifyOptions& options) {
  DEUT_ASSIGN_OR_RETURN(const LogDirectory opened, LogDirectory::Open(storage, directory));
  LogReport report;
  report.files = opened.segments.size();
  if (opened.lock == nullptr) report.notes.push_back(Concat(directory, ": there is no lock file: this is a copy"));
  for (const std::string& path : opened.foreign_paths) {
    report.notes.push_back(Concat(path, ": is not of the transaction component"));
  }
  const auto find = [&](std::string_view rule, std::string text) {
    ++report.damages;
    if (report.findings.size() < options.max_findings) report.findings.push_back({std::string(rule), std::move(text)});
  };
  ChainAudit audit(directory, find);
  const Result<RecoveredChain> chain = RecoverChain(storage, directory, &audit);
  if (!chain.ok() && chain.status() != ErrorCode::kCorruption) return chain.status();
  if (!chain.ok()) find("", std::string(chain.status().message()));
  report.counts = audit.counts();
  report.state = audit.state();
  report.first_lsn = audit.first_lsn();
  report.end = audit.end();
  report.end_reason = audit.why().message();
  if (!chain.ok()) return report;
  // The audit has seen the very log that recovery returns, whatever its bytes are.
  DEUT_CHECK(chain->empty || (report.end.has_value() && *report.end == chain->end));
  DEUT_CHECK(report.counts.segments == chain->segments.size());
  DEUT_CHECK(chain->empty || report.first_lsn == chain->first_lsn);
  DEUT_CHECK(chain->empty || report.state.redo_start == chain->state.redo_start);
  DEUT_CHECK(chain->empty || report.state.reserved == chain->state.reserved);
  report.empty = chain->empty;
  for (const UnprovenBlock& block : chain->unproven) report.unproven_bytes += block.bytes;
  return report;
}

}  // namespace deut::tc
