// LinkThread: the life of the connection: Hello, the checks of X4 and S2, one log stream, shipping until it breaks, a pause, and again.
// Pauses double from reconnect_min to reconnect_max, jittered, and begin anew once a connection has lasted reconnect_max.
// Thread-safety: Start and Stop by one thread, once each.
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
  // One connection, from Hello until it is lost. Sets *established when the DC was accepted.
  Status Session(bool* established);
  // X4: asks the DC without changing it, compares, and begins the log's life only then. A refusal leaves the log and the DC as they were, so that
  // the next start finds the same: were the log written to, it would grow past what the DC has; did the DC obey this TC, it would no longer say
  // whose data it holds. So also a TC that has served for long asks before each Hello: another folder may have been put under the DC.
  // Answers what the DC has said; nothing with that step left out.
  Result<std::optional<HelloBasis>> LookAndBegin();
  Result<HelloAnswer> SayHello(const std::optional<HelloBasis>& decided_on);
  // The comparison of an inquiry's answer.
  Status Compare(const HelloAnswer& answer);
  HelloRequest Request() const;
  // These answers of a DC do not change by asking again.
  void FailIfFinal(const Status& status);
  // X4: the log knows every DC before it is used.
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
  bool met_ = false;  // a DC was accepted by this life of the TC
  Shipper shipper_;
  std::atomic<uint64_t> hellos_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_LINK_THREAD_H_
