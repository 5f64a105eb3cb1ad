// Shipper: sends the log to the DC over one stream after another, and keeps the window of batches in flight. It
// appends LOW_WATER records (X1), and moves the redo start (S2). It runs on the link's thread.
//
// One round of the Shipper (a "low-water round" is always called so):
//   1. Drop the acknowledged batches. Fail if batches are in flight and none was acknowledged for stall_timeout.
//   2. Fill the batch. Send it if the window has room, and if it is full or the last one left at least `linger` ago.
//   3. Ask the DC for its free space if a put was refused for lack of it. Tell it the durable LSN if no batch does.
//   4. Request a low-water round if a commit is held back. Append a LOW_WATER record if one is due. Work on the redo
//      start.
//   5. If no batch with entries was sent and low-water did not move, wait (WaitForWork).
// An idle system waits for durability. It runs one round of the Shipper in each redo_start_period.
// Thread-safety: Run by one thread at a time; counters from any thread.
// Ownership: owns the feed and its counters. It shares `changes` with the log: a waiter that it has registered there
// may outlive it, and bumps the word (durable_signal.h). Everything else outlives it.
#ifndef TC_DC_LINK_SHIPPER_H_
#define TC_DC_LINK_SHIPPER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "tc/dc_link/active_floor_source.h"
#include "tc/dc_link/change_word.h"
#include "tc/dc_link/commit_feed.h"
#include "tc/dc_link/dc_gate.h"
#include "tc/dc_link/dc_link_options.h"
#include "tc/dc_link/durable_report.h"
#include "tc/dc_link/durable_signal.h"
#include "tc/dc_link/low_water_rounds.h"
#include "tc/dc_link/low_water_source.h"
#include "tc/dc_link/outgoing_batch.h"
#include "tc/dc_link/redo_start_mover.h"
#include "tc/dc_link/send_window.h"
#include "tc/dc_link/space_question.h"
#include "tc/redo_log/low_water_records.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class Shipper {
 public:
  struct Counters {
    std::atomic<uint64_t> batches{0}, batch_bytes{0}, updates{0}, resent_batches{0};
    std::atomic<uint64_t> low_water_records{0}, held_back_rounds{0}, in_flight_bytes{0}, wakeups{0};
    std::atomic<Position> ship_position{Position{}};
  };

  // `recovered_end`: everything before it must be applied before the gate opens for the first time (X4).
  Shipper(Runtime& runtime, RedoLog& log, Lsn recovered_end, LowWaterSource& low_water,
          const ActiveFloorSource& active_floor, DcGate& gate, std::shared_ptr<ChangeWord> changes,
          const DcLinkOptions& options);

  // Ships everything behind `hello.applied` until the session is lost or the link is finished. `session` is the number
  // that DcGate::StartSession gave for `hello`; Run ends when the gate says that this session no longer ships.
  // Returns why it ended:
  //   the gate's final status or last error   the link is finished, or the session was lost
  //   UNAVAILABLE                             nothing was acknowledged for stall_timeout
  //   those of ApplyLogStream::Send           the stream took no batch
  //   those of the log                        they fail the link for good, except CANCELLED (the log was stopped)
  Status Run(ApplyLogStream& stream, uint64_t session, const HelloAnswer& hello);

  const Counters& counters() const { return counters_; }

 private:
  void Begin(const HelloAnswer& hello);
  Status Round(ApplyLogStream& stream, DcId dc, bool* worked);
  void DropAcknowledged(MonotonicTime now);
  bool WindowHasRoom() const { return window_.HasRoomFor(batch_.content().entries.size()); }
  Status Send(ApplyLogStream& stream, MonotonicTime now);
  // X7: if a put was refused, an empty batch makes the DC report its free space again (space_question.h).
  Status AskForSpace(ApplyLogStream& stream, MonotonicTime now);
  // X4: while nothing is sent, an empty batch tells the DC up to where the log is durable (durable_report.h).
  Status SendDurableLsn(ApplyLogStream& stream, MonotonicTime now);
  // Sends a batch without entries, which the DC answers.
  Status SendEmpty(ApplyLogStream& stream, MonotonicTime now);
  // Notes that the batch to be sent carries the durable LSN.
  void NoteDurableSent(MonotonicTime now);
  // X1: appends one record per stream start, and one whenever it is due.
  void AppendLowWater(MonotonicTime now);
  // Requests a low-water round if a commit is held back and the pause has passed. True if low-water moved.
  bool AdvanceLowWater(MonotonicTime now);
  Status MoveRedoStart(DcId dc, MonotonicTime now);
  // Returns the status of a call on the log. A failure ends the link.
  Status CheckLog(Status status);
  // Waits until `changes_` is bumped after `seen`, or until the earliest of these times:
  // - the end of a redo_start_period;
  // - the end of the linger, if the batch has entries and the window has room;
  // - the next low-water round, if low-water holds a commit back;
  // - the next question for free space, if one is wanted and nothing is pending or in flight;
  // - the next report of the durable LSN, if the DC has not been told of it and the batch has no entries;
  // - LowWaterRecords::kInterval from now, if a low-water record will be due;
  // - the stall timeout, if batches are in flight.
  // The gate bumps the word at acknowledgements, losses, its end and refused puts. The log bumps it when it is durable
  // beyond the records read, but only if the batch has no entries and the last Fill stopped there.
  void WaitForWork(uint32_t seen);

  Runtime& runtime_;
  RedoLog& log_;
  const Lsn recovered_end_;
  LowWaterSource& low_water_;
  DcGate& gate_;
  std::shared_ptr<ChangeWord> changes_;
  const DcLinkOptions& options_;

  RedoStartMover redo_start_;
  LowWaterRecords low_water_records_;
  bool stream_starts_ = false;  // the low-water record of the stream's start is due
  CommitFeed feed_;
  DurableSignal durable_signal_;
  OutgoingBatch batch_;
  SendWindow window_;
  LowWaterRounds low_water_rounds_;
  SpaceQuestion space_question_;
  DurableReport durable_report_;
  bool start_target_set_ = false;
  Counters counters_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_SHIPPER_H_
