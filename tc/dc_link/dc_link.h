// DcLink: the only way the TC talks to its DC. It keeps the connection (Hello, incarnations, reconnecting), ships the redo log in
// commit-record order (S1, X1), guards reads against a DC that has yet to catch up (X3), and knows what the DC holds.
//
// Life: constructed -> Start -> catching up -> open <-> closed (DC away or catching up) -> stopped, fenced or refused for good.
// The TC serves nothing before WaitCaughtUp has returned OK (X4). Starting needs no DC: while it is down the link keeps trying.
// Thread-safety: all methods from any thread, except Start and Stop (one thread, once each).
// Ownership: borrows runtime, DC, log and sources, which outlive it; owns its one thread. Objects from OpenScan must not outlive it.
// Errors: UNAVAILABLE names the DC and what was waited for; FENCED and the refusals of DcLinkOptions::on_fatal are final.
// Paper: Deuteronomy's control operations (end of stable log, redo scan start point); what differs is said in README.md.
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
#include "tc/dc_link/low_water_source.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

// A moment's view of the link, for `deut status`, health and tests.
struct DcLinkStatus {
  std::string state;  // for people: "open", or what the link is doing or waiting for, naming the DC
  bool caught_up = false;
  bool gate_open = false;
  bool shipping = false;  // there is a log stream
  DcId dc;                // 0 = none has answered yet
  DcIncarnation incarnation;
  IncarnationNumber number;
  Position applied;
  Position stable;
  Position ship_position;
  Position ever_sent;
  Lsn redo_start;
  uint64_t backlog_bytes = 0;    // log appended but not yet applied by the DC
  uint64_t in_flight_bytes = 0;  // sent but not yet acknowledged
  uint64_t free_bytes = 0;
  // Since the start:
  uint64_t hellos = 0;  // begun: each is an inquiry, then the Hello itself
  uint64_t sessions = 0;
  uint64_t incarnations = 0;
  uint64_t batches = 0;
  uint64_t batch_bytes = 0;
  uint64_t updates = 0;
  uint64_t resent_batches = 0;
  uint64_t low_water_records = 0;  // appended to the log
  uint64_t repeated_reads = 0;
  uint64_t dropped_acks = 0;
  uint64_t held_back_rounds = 0;  // S1: low-water rounds asked for while a commit was held back
  uint64_t wakeups = 0;           // rounds of the link's thread
};

class DcLink {
 public:
  // `recovered` is what RedoLog::Open told: the log's end, redo start and known DCs (X4, S2).
  DcLink(Runtime& runtime, DataComponent& dc, RedoLog& log, const RecoveredLog& recovered, LowWaterSource& low_water,
         const ActiveFloorSource& active_floor, DcLinkOptions options);
  ~DcLink();  // stops
  DcLink(const DcLink&) = delete;
  DcLink& operator=(const DcLink&) = delete;

  // REQUIRES: nothing has been committed in this epoch yet (X4).
  void Start();
  // Closes the gate for good: everybody who waits at it, now or later, gets UNAVAILABLE. Any thread, any number of times.
  void CloseGate();
  // CloseGate, closes the stream and ends the thread. REQUIRES: the log has not been stopped.
  void Stop();

  // OK once the DC has applied everything that the log held when it was recovered (X4): from then on the TC may serve.
  // UNAVAILABLE at the deadline; the link's final error if it has one.
  Status WaitCaughtUp(Deadline deadline);

  // HOT PATH while the gate is open: no lock, no allocation, no system call but the wait for the answers.
  // Where the DC is in this process and memory has the answers, this thread gets them (DirectReads). Else
  // fills each request's `sender`, clears its answer, submits, and waits until each has an answer from the life of the DC it was meant
  // for; requests that met another life or no connection are repeated behind the gate (X3). OK: every request has been answered,
  // each with a status of its own (NOT_FOUND: no such table). Otherwise no request is in use by the DC any more, and no answer counts.
  // REQUIRES: the caller looked into the TC for these keys before (S4), and still counts in the low-water (S7).
  Status Read(absl::Span<DataRequest* const> requests, Deadline deadline);

  // The same in two steps, for who can do without an answer: TryAsk submits, unless the gate is closed (false: nothing was submitted). Take waits for
  // the answers; what has none at the deadline, or none from the life that was asked, has a status that is not OK. Nothing is repeated, and what is
  // wrong with the connection is told by whoever needs it.
  bool TryAsk(absl::Span<DataRequest* const> requests);
  // REQUIRES: TryAsk has answered true. No request is in use by the DC afterwards.
  void Take(absl::Span<DataRequest* const> requests, Deadline deadline);

  // A bulk scan that survives lives of the DC (S4, X3). Waits for the gate. The object belongs to one thread at a time.
  Result<std::unique_ptr<BulkScan>> OpenScan(const ScanSpec& spec, Deadline deadline);

  // Everything up to here is in the memory of the DC's current life; the TC may collect it. Goes back when a new life is found, and what
  // was collected by then is behind the gate. Latch-free.
  Position applied() const;
  // OK once applied() >= position.
  Status WaitApplied(Position position, Deadline deadline);
  // Everything up to here survives the DC.
  Position stable() const;

  // X7: false while a put of `bytes` (key and value) must be refused. Deletes need not ask. Latch-free.
  bool HasSpace(uint64_t bytes) const;

  // The DC's tables, when it has caught up (T1): after WaitCaughtUp, exactly the TC's catalogue.
  Result<std::vector<TableInfo>> Tables(Deadline deadline);
  // Advice; see DataComponent.
  Result<std::vector<std::string>> Partition(TableId table, uint32_t n, Deadline deadline);
  // Makes everything applied up to `up_to` stable; redo start may advance afterwards.
  Result<Position> Checkpoint(Position up_to, Deadline deadline);
  Result<std::vector<CounterValue>> DcCounters(Deadline deadline);

  DcLinkStatus status() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DC_LINK_H_
