// Shipper: sends the log to the DC over one stream after another, keeps the window of batches in flight, appends LOW_WATER records (X1) and
// moves the redo start (S2). It runs on the link's thread.
//
// One round: drop what is acknowledged; fill the batch; send it if it is full, or if the last one left at least `linger` ago, and the
// window has room; ask for space if somebody lacks it; append a LOW_WATER record if one is due; work on the redo start; if nothing was
// sent, wait for the first of: the log's durability, an acknowledgement, a low-water round due, the linger. An idle system waits for
// durability and looks once a redo_start_period.
// Thread-safety: Run by one thread at a time; counters from any thread.
#ifndef TC_DC_LINK_SHIPPER_H_
#define TC_DC_LINK_SHIPPER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/observe/episode_log.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "tc/dc_link/active_floor_source.h"
#include "tc/dc_link/change_word.h"
#include "tc/dc_link/commit_feed.h"
#include "tc/dc_link/dc_gate.h"
#include "tc/dc_link/dc_link_options.h"
#include "tc/dc_link/durable_signal.h"
#include "tc/dc_link/low_water_source.h"
#include "tc/dc_link/redo_start_tracker.h"
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

  // `recovered_end`: what lies before it must be applied before the gate opens for the first time (X4).
  Shipper(Runtime& runtime, RedoLog& log, Lsn recovered_end, LowWaterSource& low_water,
          const ActiveFloorSource& active_floor, DcGate& gate, std::shared_ptr<ChangeWord> changes,
          const DcLinkOptions& options);

  // Ships everything behind `hello.applied` until the session is lost or the link is finished; says why it ended.
  Status Run(ApplyLogStream& stream, uint64_t session, const HelloAnswer& hello);

  const Counters& counters() const { return counters_; }

 private:
  void Begin(const HelloAnswer& hello);
  Status Round(ApplyLogStream& stream, DcId dc, bool* worked);
  void TakeAcknowledged(MonotonicTime now);
  bool ReadyToSend(MonotonicTime now) const;
  bool WindowHasRoom() const;
  Status Send(ApplyLogStream& stream, MonotonicTime now);
  // X7: puts are refused as long as the DC's last word is that it is short of space, and while they are nothing may be left to send, to which it
  // would answer. Then an empty batch makes it speak.
  Status AskForSpace(ApplyLogStream& stream, MonotonicTime now);
  // X4: while nothing is sent, for example as one open transaction holds all commits back (S1), acknowledged commits pile up that the DC does not
  // have. An empty batch tells it that they are there, so that an older copy of the log will not do.
  Status TellDurable(ApplyLogStream& stream, MonotonicTime now);
  // A batch without entries, which the DC answers.
  Status SendEmpty(ApplyLogStream& stream, MonotonicTime now);
  // The batch that leaves says how far the log is durable.
  void NoteTold(MonotonicTime now);
  // X1: one per stream start, and when one is due.
  void AppendLowWater(MonotonicTime now);
  // Asks for a low-water round if a commit is held back and it is time; true if low-water moved.
  bool AdvanceLowWater(MonotonicTime now);
  Status MoveRedoStart(DcId dc, MonotonicTime now);
  // Passes on the status of a call on the log; a failure ends the link.
  Status CheckLog(Status status);
  void WaitForWork(uint32_t seen);

  Runtime& runtime_;
  RedoLog& log_;
  const Lsn recovered_end_;
  LowWaterSource& low_water_;
  const ActiveFloorSource& active_floor_;
  DcGate& gate_;
  std::shared_ptr<ChangeWord> changes_;
  const DcLinkOptions& options_;

  RedoStartTracker tracker_;
  LowWaterRecords low_water_records_;
  bool stream_starts_ = false;  // and its low-water record is owed
  CommitFeed feed_;
  DurableSignal durable_signal_;

  struct Sent {
    Position to;
    uint64_t bytes;
  };
  std::deque<Sent> in_flight_;
  uint64_t in_flight_bytes_ = 0;
  LogBatch batch_;
  CommitFeed::Limit limit_ = CommitFeed::Limit::kNotDurable;  // of the last Fill
  bool start_target_set_ = false;
  Position resent_until_;
  MonotonicTime last_send_{};
  MonotonicTime last_progress_{};
  MonotonicTime next_round_{};
  MonotonicTime next_question_{};
  Lsn told_durable_;  // in this stream
  MonotonicTime next_tell_{};
  Duration round_pause_{};
  MonotonicTime next_redo_start_{};
  EpisodeLog space_log_;
  Counters counters_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_SHIPPER_H_
