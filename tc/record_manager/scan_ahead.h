// ScanAhead: step 2 of a scan that goes on beyond its first batch (scan_path.h): reads from a bulk scan of the DC, and
// gathers and grants ahead of it (rules S4, R8).
//
// Where the DC reads ahead, stretches are gathered and granted while earlier ones are merged and consumed. The window of
//   the scan's flow control (tc/scan/scan_flow.h) limits that. A writer in the way ahead (R8) only ends the gathering;
//   it is decided when the scan gets there. A scan for update (SIX) gathers and posts nothing ahead.
// Thread-safety: one thread at a time. Ownership: borrows everything.
#ifndef TC_RECORD_MANAGER_SCAN_AHEAD_H_
#define TC_RECORD_MANAGER_SCAN_AHEAD_H_

#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "tc/record_manager/scan_ask.h"
#include "tc/record_manager/scan_gather.h"

namespace deut::tc {

class ScanAhead {
 public:
  ScanAhead(const ScanCall& call, ScanGather& gather, ResumableScan& scan)
      : call_(call), gather_(gather), scan_(scan) {}

  // Takes the next batch of the bulk scan as the scan's answer. Opens the bulk scan if there is none. RESOURCE_EXHAUSTED:
  // the DC has no thread for one. REQUIRES: the scan holds a permit.
  Status AskStream(const TableState& table);

 private:
  Status Open();
  // Gathers and grants for the present batch or, if `ahead`, for the next ones.
  Status GatherAndGrant(const TableState& table, bool ahead);
  // *moved: the bound has moved.
  Status GatherAhead(const TableState& table, uint64_t window, bool* moved);
  Status GrantTo(std::string_view bound, uint64_t window, bool moved);
  // The bytes that may be granted and not yet taken.
  uint64_t Window(bool ahead);

  const ScanCall& call_;
  ScanGather& gather_;
  ResumableScan& scan_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_AHEAD_H_
