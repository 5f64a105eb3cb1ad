// FakeDataComponent: a small, correct DC for tests of the link, in the test's own process. Its data is a FakeImage. It
// refuses as X5 and X3 say. It has several incarnations: a kill ends one, and drops everything in memory that was not
// made stable. It applies and acknowledges batches on its own thread. A test can delay or drop what real networks and
// machines delay or drop.
// Thread-safety: all methods from any thread; Kill and Start by one at a time. Ownership: owns its thread and its
// data.
#ifndef TC_DC_LINK_FAKE_DATA_COMPONENT_H_
#define TC_DC_LINK_FAKE_DATA_COMPONENT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"
#include "tc/dc_link/change_word.h"
#include "tc/dc_link/fake_image.h"

namespace deut::tc {

class FakeDataComponent : public DataComponent {
 public:
  // Every entry that reached any incarnation of this DC, in the order of arrival.
  struct Seen {
    LogEntryKind kind;
    Position position;
    Timestamp timestamp;
    std::string key;
  };
  struct Counts {
    uint64_t hellos = 0, reads = 0, scans = 0, streams = 0, batches = 0, duplicates = 0, refused = 0, gaps = 0;
    uint64_t calls() const { return hellos + reads + scans + streams + batches; }
  };

  // Constructed without an incarnation: call Start.
  FakeDataComponent(Runtime& runtime, DcId id);
  ~FakeDataComponent() override;

  // --- Faults and states that tests set.
  void Start();  // the next incarnation, from the stable data
  void Kill();   // streams close, requests in flight fail; data that is not stable is dropped
  void Restart() {
    Kill();
    Start();
  }
  void MakeStable();  // everything applied is stable from now on; the next acknowledgement says so
  // A copy of its folder: the stable data, and the number of its starts. REQUIRES for PutBackCopy: killed.
  void CopyFolder();
  void PutBackCopy();
  // Another TC has run on this DC's folder: the DC obeys it, and has the updates that it has sent. REQUIRES: killed.
  void BecomeFork(const ObeyedTc& obeyed, Position applied);
  // Hellos are accepted whatever they were decided on, as by a program that does not compare.
  void AcceptAnyHello(bool any);
  void OnInquiry(std::function<void()> observer);  // called on the asker's thread, when the answer is made
  void LoseStable(Position left);  // a disk that lied: only this much is stable (takes effect at the next incarnation)
  void HoldApply(bool hold);       // batches queue up unapplied
  void HoldAcks(bool hold);        // batches are applied; acknowledgements queue up, also across incarnations
  void DeliverHeldAcks();          // late: to the stream that is open now
  void LoseAcks(bool lose);
  void DuplicateAcks(bool duplicate);
  void HoldReads(bool hold);  // requests wait; HoldReads(false) answers them
  void AnswerReadsAs(
      DcIncarnation other);  // claims that another incarnation answered, with no record; 0 = correct again
  void BreakStream(const Status& status);    // the network closes the log stream; the incarnation goes on
  void RefuseStreams(const Status& status);  // no log stream is opened; OK: they are opened again
  // From the next Hello on, point reads of these keys are direct ones. Other keys need the disk.
  void AnswerDirectly(std::function<bool(std::string_view key)> in_memory);
  void SendFalseAck(const ApplyAck& ack);
  void set_free_bytes(uint64_t bytes);
  void set_extra_applied(Position applied);                         // Hello claims this
  void OnEntry(std::function<void(const LogEntryView&)> observer);  // called on the fake's thread
  void OnSend(std::function<void(const LogBatch&)> observer);       // called on the sender's thread, inside Send

  // --- State that tests query.
  Counts counts();
  HelloRequest last_hello();
  ObeyedTc obeyed();
  Lsn log_durable();
  std::vector<Seen> seen();
  Position applied();
  DcIncarnation incarnation();
  std::optional<std::string> Get(TableId table, const std::string& key);
  size_t records();
  // Waits until `condition()`. Evaluates it again whenever this object changes.
  bool WaitUntil(const std::function<bool()>& condition, Duration limit = seconds(20));

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override;
  std::shared_ptr<DirectReads> OpenReads(const Sender& sender) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  class Direct;
  class Scan;
  class Stream;

  ObeyedTc ObeyedLocked() const DEUT_REQUIRES(mutex_) { return ObeyedTc{tc_, epoch_, nonce_}; }
  Status CheckBasisLocked(const HelloRequest& request) DEUT_REQUIRES(mutex_);
  Result<HelloAnswer> AnswerHello(const HelloRequest& request);
  HelloAnswer AnswerHelloLocked() DEUT_REQUIRES(mutex_);
  Status CheckSenderLocked(const Sender& sender) DEUT_REQUIRES(mutex_);
  void AnswerLocked(DataRequest* request) DEUT_REQUIRES(mutex_);
  void FindLocked(DataRequest* request) DEUT_REQUIRES(mutex_);
  void ApplyLocked(const LogBatch& batch) DEUT_REQUIRES(mutex_);
  void ApplyEntryLocked(const LogEntryView& entry) DEUT_REQUIRES(mutex_);
  void AckLocked() DEUT_REQUIRES(mutex_);
  void CloseStreamLocked(const Status& status) DEUT_REQUIRES(mutex_);
  void Work();

  Runtime& runtime_;
  const DcId id_;
  ChangeWord changes_;
  Mutex mutex_;
  bool ending_ DEUT_GUARDED_BY(mutex_) = false;
  bool alive_ DEUT_GUARDED_BY(mutex_) = false;
  uint64_t incarnations_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t number_ DEUT_GUARDED_BY(mutex_) = 0;  // number of starts, as its folder says
  uint64_t copy_number_ DEUT_GUARDED_BY(mutex_) = 0;
  HelloRequest last_hello_ DEUT_GUARDED_BY(mutex_);
  TcId tc_ DEUT_GUARDED_BY(mutex_);
  TcEpoch epoch_ DEUT_GUARDED_BY(mutex_);
  uint64_t nonce_ DEUT_GUARDED_BY(mutex_) = 0;
  Lsn log_durable_ DEUT_GUARDED_BY(mutex_);
  bool accept_any_hello_ DEUT_GUARDED_BY(mutex_) = false;
  std::function<void()> on_inquiry_ DEUT_GUARDED_BY(mutex_);
  FakeImage memory_ DEUT_GUARDED_BY(mutex_);
  FakeImage stable_ DEUT_GUARDED_BY(mutex_);
  FakeImage copy_ DEUT_GUARDED_BY(mutex_);
  Stream* stream_ DEUT_GUARDED_BY(mutex_) = nullptr;
  std::deque<LogBatch> queue_ DEUT_GUARDED_BY(mutex_);
  std::vector<DataRequest*> held_reads_ DEUT_GUARDED_BY(mutex_);
  std::vector<ApplyAck> held_acks_ DEUT_GUARDED_BY(mutex_);
  bool hold_apply_ DEUT_GUARDED_BY(mutex_) = false;
  bool hold_acks_ DEUT_GUARDED_BY(mutex_) = false;
  bool lose_acks_ DEUT_GUARDED_BY(mutex_) = false;
  bool duplicate_acks_ DEUT_GUARDED_BY(mutex_) = false;
  bool hold_reads_ DEUT_GUARDED_BY(mutex_) = false;
  std::function<bool(std::string_view)> in_memory_ DEUT_GUARDED_BY(mutex_);
  Status refuse_streams_ DEUT_GUARDED_BY(mutex_);
  DcIncarnation answer_as_ DEUT_GUARDED_BY(mutex_);
  uint64_t free_bytes_ DEUT_GUARDED_BY(mutex_) = uint64_t{1} << 40;
  Position extra_applied_ DEUT_GUARDED_BY(mutex_);
  std::function<void(const LogEntryView&)> on_entry_ DEUT_GUARDED_BY(mutex_);
  std::function<void(const LogBatch&)> on_send_ DEUT_GUARDED_BY(mutex_);
  Counts counts_ DEUT_GUARDED_BY(mutex_);
  std::vector<Seen> seen_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_FAKE_DATA_COMPONENT_H_
