// DcLink: the only way the TC talks to its DC. It keeps the connection (Hello, incarnations, reconnecting) and ships
// the redo log in commit-record order (S1, X1). It guards reads against a DC that has yet to catch up (X3), and knows
// what the DC holds.
//
// States: constructed -> Start -> catching up -> open <-> closed (DC away or catching up) -> stopped, fenced or
// refused for good.
// The TC serves nothing before WaitCaughtUp has returned OK (X4). Start needs no DC: while it is down the link keeps
// trying.
// Thread-safety: all methods from any thread, except Start and Stop (one thread, once each).
// Ownership: borrows runtime, DC, log and sources, which outlive it; owns its one thread. Objects from OpenScan must
// not outlive it.
// Errors: UNAVAILABLE names the DC and what the call waited for. FENCED and the refusals of DcLinkOptions::on_fatal
// are final.
// Paper: Deuteronomy's control operations (end of stable log, redo scan start point). README.md lists the
// differences.
#ifndef TC_DC_LINK_DC_LINK_H_
#define TC_DC_LINK_DC_LINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "tc/dc_link/active_floor_source.h"
#include "tc/dc_link/bulk_scan.h"
#include "tc/dc_link/dc_link_options.h"
#include "tc/dc_link/dc_link_status.h"
#include "tc/dc_link/low_water_source.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class DcLink {
 public:
  // `recovered` is the result of RedoLog::Open: the log's end, redo start and known DCs (X4, S2).
  DcLink(Runtime& runtime, DataComponent& dc, RedoLog& log, const RecoveredLog& recovered, LowWaterSource& low_water,
         const ActiveFloorSource& active_floor, DcLinkOptions options);
  ~DcLink();  // stops
  DcLink(const DcLink&) = delete;
  DcLink& operator=(const DcLink&) = delete;

  // REQUIRES: nothing has been committed in this TC epoch yet (X4).
  void Start();
  // Closes the gate for good: every caller that waits at it, now or later, gets UNAVAILABLE. Any thread, any number
  // of times.
  void CloseGate();
  // Calls CloseGate, closes the stream and ends the thread. REQUIRES: the log has not been stopped.
  void Stop();

  // OK once the DC has applied everything that the log held when it was recovered (X4). From then on the TC may
  // serve. UNAVAILABLE at the deadline; the link's final error if it has one.
  Status WaitCaughtUp(Deadline deadline);

  // HOT PATH while the gate is open: no lock, no allocation, no system call but the wait for the answers.
  // If the DC is in this process and has the answers in memory, the calling thread gets them (DirectReads). Otherwise
  // Read fills each request's `sender`, clears its answer, and submits it. It waits until each request has an answer
  // from the incarnation that it was meant for. Requests that met another incarnation or no connection are repeated
  // behind the gate (X3).
  //   OK: every request has been answered, each with a status of its own (NOT_FOUND: no such table).
  //   Otherwise the DC uses no request any more, and no answer counts.
  // REQUIRES: the caller looked into the TC for these keys before (S4), and still counts in low-water (S7).
  Status Read(absl::Span<DataRequest* const> requests, Deadline deadline);

  // Read in two steps, for a caller that can do without an answer. TrySubmitReads submits, unless the gate is closed (false:
  // nothing was submitted). CollectReads waits for the answers. A request without an answer at the deadline, or without one
  // from the incarnation that was asked, gets a status that is not OK. Nothing is repeated, and no loss is reported:
  // callers that need their answers report it.
  bool TrySubmitReads(absl::Span<DataRequest* const> requests);
  // REQUIRES: TrySubmitReads has returned true. The DC uses no request afterwards.
  void CollectReads(absl::Span<DataRequest* const> requests, Deadline deadline);

  // A bulk scan that survives restarts of the DC (S4, X3). Waits for the gate. The object belongs to one thread at a
  // time.
  Result<std::unique_ptr<BulkScan>> OpenScan(const ScanSpec& spec, Deadline deadline);

  // Every update up to this position is in the memory of the DC's present incarnation; the TC may collect it. It goes
  // back when a new incarnation is found; updates that were collected by then are behind the gate. Latch-free.
  Position applied() const;

  // X7: false while a put of `bytes` (key and value) must be refused. Deletes need not ask. Latch-free.
  bool HasSpace(uint64_t bytes) const;
  // Whether a creation in the log may have options of the table, as the DC's last answer to Hello says.
  bool KnowsTableOptions() const;

  // Returns the DC's tables, when it has caught up (T1). After WaitCaughtUp they are exactly the TC's catalogue.
  Result<std::vector<TableInfo>> Tables(Deadline deadline);
  // Returns advice; see DataComponent.
  Result<std::vector<std::string>> Partition(TableId table, uint32_t n, Deadline deadline);
  Result<std::vector<CounterValue>> DcCounters(Deadline deadline);

  DcLinkStatus status() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DC_LINK_H_
