// LinkThread: runs the connection in a loop: Hello, the checks of X4 and S2, one log stream, shipping until it
// breaks, a pause. Pauses double from reconnect_min to reconnect_max, jittered. They begin anew once a connection has
// lasted reconnect_max.
// Thread-safety: Start and Join by one thread; counters from any thread. Ownership: owns its thread and its shipper;
// everything else outlives it.
#ifndef TC_DC_LINK_LINK_THREAD_H_
#define TC_DC_LINK_LINK_THREAD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "tc/dc_link/active_floor_source.h"
#include "tc/dc_link/change_word.h"
#include "tc/dc_link/dc_gate.h"
#include "tc/dc_link/dc_link_options.h"
#include "tc/dc_link/low_water_source.h"
#include "tc/dc_link/peer_check.h"
#include "tc/dc_link/shipper.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class LinkThread {
 public:
  LinkThread(Runtime& runtime, DataComponent& dc, RedoLog& log, const RecoveredLog& recovered,
             LowWaterSource& low_water, const ActiveFloorSource& active_floor, DcGate& gate,
             std::shared_ptr<ChangeWord> changes, const DcLinkOptions& options);

  void Start();
  // REQUIRES: the gate is finished (its Stop was called).
  void Join();

  const Shipper::Counters& shipped() const { return shipper_.counters(); }
  uint64_t hellos() const { return hellos_.load(std::memory_order_relaxed); }

 private:
  void Main();
  // Runs one connection, from Hello until it is lost. Sets *established when the DC was accepted.
  Status Session(bool* established);
  // X4: asks the DC without changing it, compares, and only then begins the log's new epoch. A refusal leaves the log
  // and the DC as they were, so that the next start is refused alike. If the log were written to, it would grow past
  // the DC's position. If the DC obeyed this TC, it would no longer say whose data it holds. A TC that has served for
  // a while also asks before each Hello, because another folder may have been put under the DC. Returns the DC's
  // answer, or nothing if that step is left out.
  Result<std::optional<HelloBasis>> InquireAndBeginLog();
  Result<HelloAnswer> SayHello(const std::optional<HelloBasis>& decided_on);
  // Checks an inquiry's answer.
  Status Compare(const HelloAnswer& answer);
  HelloRequest Request() const;
  // Fails the link if `status` is an answer that a DC will not change when asked again.
  void FailIfFinal(const Status& status);
  // X4: logs a DC before it is used.
  Status RecordKnown(DcId dc);
  void Pause(Duration length);

  Runtime& runtime_;
  DataComponent& dc_;
  RedoLog& log_;
  DcGate& gate_;
  std::shared_ptr<ChangeWord> changes_;
  const DcLinkOptions& options_;
  const Position recovered_limit_;
  const LogHistory history_;
  PeerExpectation expected_;
  bool has_accepted_dc_ = false;  // this TC process has accepted a DC
  Shipper shipper_;
  std::atomic<uint64_t> hellos_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_LINK_THREAD_H_
