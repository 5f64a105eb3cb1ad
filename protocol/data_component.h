// DataComponent: the only interface between a transaction component (TC) and a data component (DC). Its
// calls are described here, their order and repetition in protocol/README.md. It has three implementations, which a TC
// cannot tell apart:
// - the DC itself (dc/server),
// - a gRPC client of a DC in another process (grpc_data_component.h),
// - a wrapper that gives an in-process DC several incarnations (in_process_data_component.h).
//
// Every request names its sender and the incarnation of the DC that it is meant for (X3, X5). Errors of all calls:
//   FENCED             a TC with a higher epoch (or the same epoch and another nonce) has said Hello, or the DC
//                      belongs to another TC
//   WRONG_INCARNATION  the request is meant for an earlier incarnation of this DC
//   UNAVAILABLE        no connection, or the DC is not ready
// Implementations never retry. The TC's DC link decides what to repeat.
// Thread-safety: any thread may call any method, unless the method's comment says otherwise.
#ifndef PROTOCOL_DATA_COMPONENT_H_
#define PROTOCOL_DATA_COMPONENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/incarnation_number.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"

namespace deut {

// It is raised when messages change meaning. Peers with different numbers refuse each other with VERSION_MISMATCH. The
// "v1" in the package of the messages is another number: protocol/docs/versions.md ("The wire") has both.
constexpr uint32_t kProtocolVersion = 2;

// Hello refuses larger epochs: a DC that obeyed an epoch near overflow could never obey another TC. No TC starts this
// often.
constexpr TcEpoch kMaxTcEpoch{uint64_t{1} << 62};

// The sender of a request, and the incarnation of the DC that it is meant for.
struct Sender {
  TcId tc;
  TcEpoch epoch;
  uint64_t nonce = 0;  // drawn at the TC's start; tells two TCs with the same epoch apart (X5)
  DcIncarnation incarnation;
};

struct TableInfo {
  TableId id;
  std::string name;
  // T1: ids are never reused. So of the dropped tables a list has only the one with the highest id; it has no name.
  bool dropped = false;
  uint64_t records = 0;  // approximate
  uint64_t bytes = 0;    // approximate
};

// The TC instance that a DC obeys (X5). Epoch 0: no TC has said Hello yet.
struct ObeyedTc {
  TcId tc;
  TcEpoch epoch;
  uint64_t nonce = 0;
  friend bool operator==(const ObeyedTc&, const ObeyedTc&) = default;
};

// The part of a DC's answer to an inquiry that the TC has compared with its redo log (X4).
struct HelloBasis {
  DcIncarnation incarnation;
  ObeyedTc obeyed;
  Position applied;
  Lsn log_durable;
  friend bool operator==(const HelloBasis&, const HelloBasis&) = default;
};

struct HelloRequest {
  uint32_t protocol_version = kProtocolVersion;
  TcId tc;
  TcEpoch epoch;
  uint64_t nonce = 0;
  // The DC that the TC's log names; 0 = none yet. Any other DC refuses with WRONG_STATE before it makes anything
  // durable.
  DcId expected_dc = {};
  // An inquiry: the DC makes nothing durable, drains nothing, and does not compare the epoch. Positions may still rise
  // after its answer. A TC inquires before it decides to start.
  bool inquiry = false;
  // The LSN up to which the sender's log is durable, as in LogBatch::durable.
  Lsn log_durable = {};
  // The inquiry's answer that the TC has accepted. If the DC's state no longer equals it, the DC refuses with
  // UNAVAILABLE before it makes anything durable. The TC then inquires again and decides anew. For a TC that the DC
  // already obeys, the DC compares only `incarnation` and `obeyed`, because that TC's own batches may have been in
  // flight. If absent, the DC compares nothing.
  std::optional<HelloBasis> decided_on = {};
};

// Positions count for the incarnation that answers, and for no other one, even if its number is the same (X3).
struct HelloAnswer {
  DcId dc;
  DcIncarnation incarnation;
  IncarnationNumber number = {};  // for people
  ObeyedTc obeyed = {};           // the sender itself, unless this answers an inquiry
  // X4: a lower bound of the durable LSN of `obeyed`'s log, as that TC last reported it and the DC remembers. 0: not
  // reported.
  Lsn log_durable = {};
  Position applied;
  Position stable;
  uint64_t free_bytes = 0;
  std::vector<TableInfo> tables;
  // False: a DC of an earlier version, which refuses a log that has options of a table (table_options.h).
  bool knows_table_options = true;
};

enum class Direction : uint8_t { kAscending, kDescending };

// A key range: low <= key < high. An empty low is below every key; an empty high is above every key.
struct KeyRange {
  std::string low;
  std::string high;
  bool Contains(std::string_view key) const { return key >= low && (high.empty() || key < high); }
};

struct DataRequest;

// An implementation calls it in place of `DataRequest::done` when a request is answered. It does so once, on any
// thread, perhaps inside Submit. The listener must not block. From this call on the request belongs to the caller
// again.
class DataRequestListener {
 public:
  virtual void OnAnswered(DataRequest* request) = 0;

 protected:
  ~DataRequestListener() = default;
};

// One request of the Data stream: a point read or a short scan. Ownership: the caller owns it and everything its views
// point to. It keeps them alive until `done` is set, the listener is called, or Abandon has returned. The DC fills the
// request in place, and `answer` keeps its buffer when the request is reused.
struct DataRequest {
  enum class Kind : uint8_t { kRead, kScan };

  Kind kind = Kind::kRead;
  Sender sender;
  TableId table;
  std::string_view key;  // kRead
  // kScan: reads [low, high), as in KeyRange, in the key order of `direction`, until it reaches a limit. The DC looks
  // at a bounded number of pages, which may all be empty, and then answers the keys it covered (S4). So an answer may
  // have no record, but it always covers part of the range. If the DC finds a record, it returns at least one.
  // limit_records 0 = no limit on records.
  std::string_view low;
  std::string_view high;
  Direction direction = Direction::kAscending;
  uint32_t limit_records = 0;
  uint32_t limit_bytes = 64 << 10;

  Status status;
  RecordBatch answer;  // kRead: 0 or 1 record
  DcIncarnation answered_by;
  // kScan: the part of the range that the answer covers, which may reach beyond its last record. `complete`: all of
  // [low, high). Else, ascending: [low, covered); descending: [covered, high). The next request resumes at `covered`.
  bool complete = false;
  std::string covered;
  Event done;
  uint64_t id = 0;  // Submit may set it, so that the implementation finds the request again
  // A direct read (DirectReads) has just missed in memory, so the DC need not look there first.
  bool missed_in_memory = false;
  // Optional. A server answers its peer from the listener, out of order, so that no thread waits for each request.
  DataRequestListener* listener = nullptr;

  // Implementations of DataComponent end a request with this call only, after the whole answer is in place. They do not
  // touch the request afterwards.
  void Finish(Runtime& runtime) {
    if (listener != nullptr) {
      listener->OnAnswered(this);
    } else {
      done.Signal(runtime);
    }
  }
};

// Reads by one sender from one incarnation of a DC in this process, answered on the reader's own thread. Both are fixed
// when the object is opened. It answers while that incarnation obeys that sender, and never afterwards (X3, X5). So a
// request need not name its sender or incarnation. Thread-safety: any thread. Ownership: it may outlive its DC.
class DirectReads {
 public:
  virtual ~DirectReads() = default;
  enum class Answered : uint8_t {
    kAll,   // each request has its status and its answer, as after Submit
    kSome,  // requests whose `missed_in_memory` is false are answered; the caller submits the others
    kNone,  // nothing happened: the DC no longer obeys the sender, or the incarnation has ended
  };
  // Neither reads nor writes the requests' `sender`, `answered_by`, `done` and `listener`. Several point reads in one
  // call take less time than one call for each.
  virtual Answered TryAnswer(absl::Span<DataRequest* const> requests) = 0;
};

struct ApplyAck {
  DcIncarnation incarnation;
  Position applied;  // this incarnation has everything up to here in memory
  Position
      stable;  // everything up to here survives the DC (X6); it falls back to what both checkpoint generations hold (S2)
  uint64_t free_bytes = 0;
};

// Threads of the implementation call it, so it must not block. OnClosed is the last call. It comes exactly once: when
// the stream breaks, is replaced, or loses its DC; at the latest while the stream is destroyed.
class ApplyLogListener {
 public:
  virtual ~ApplyLogListener() = default;
  virtual void OnAck(const ApplyAck& ack) = 0;
  virtual void OnClosed(const Status& status) = 0;
};

// The TC's only stream of log batches (X5). The destructor closes the stream and waits until no thread calls the
// listener any more.
class ApplyLogStream {
 public:
  virtual ~ApplyLogStream() = default;
  // Sends a batch that leaves no gap: it starts at or before the end of the batches sent or applied earlier. Blocks
  // while the stream's window is full. Only one thread at a time may call it. An error means that the stream is closed.
  virtual Status Send(const LogBatch& batch, Deadline deadline) = 0;
};

struct ScanSpec {
  TableId table;
  KeyRange range;
  Direction direction = Direction::kAscending;
  uint32_t batch_bytes = 64 << 10;
};

struct ScanBatch {
  RecordBatch records;
  // As in DataRequest, but for the range covered by this batch and all earlier ones of the stream.
  bool complete = false;
  std::string covered;
};

// A bulk scan (S4): the DC reads the tree only within the grant. Only one thread at a time may use it. Its destructor
// cancels the scan.
class ScanStream {
 public:
  virtual ~ScanStream() = default;
  // Extends the grant to the key `bound`, and by `bytes` of answer. Ascending, `bound` is an exclusive upper bound;
  // descending, an inclusive lower one. Empty means the end of the scan's range. Bounds only move forward.
  virtual Status Grant(std::string_view bound, uint64_t bytes) = 0;
  // Returns the next batch, and waits for it. A batch may hold no record, and always covers a further part of the
  // range. After a batch whose `covered` has reached the granted bound, Next needs a further Grant.
  virtual Status Next(ScanBatch* batch, Deadline deadline) = 0;
  // True: the DC reads and sends granted keys before Next asks for them, so an early Grant hides latency.
  virtual bool ReadsAhead() const { return false; }
};

struct CounterValue {
  std::string name;
  uint64_t value = 0;
};

class DataComponent {
 public:
  virtual ~DataComponent() = default;

  // Makes (TC, epoch, nonce) durable, drains the requests of older epochs in flight, then answers (X5). Fails with
  // WRONG_STATE, which names both parties and changes nothing, if the DC belongs to another TC, or the TC expects
  // another DC.
  virtual Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) = 0;

  // Starts all requests. The DC sets each request's `done` when its answer is in place, on any thread, perhaps before
  // Submit returns.
  virtual void Submit(absl::Span<DataRequest* const> requests) = 0;
  // After Abandon has returned, the implementation no longer touches `request`. It may or may not have set the
  // request's `done`. A call that submits the request may still be running, but none begins any more. Not called by a
  // listener: it would wait for its own thread.
  virtual void Abandon(DataRequest* request) = 0;

  // Returns null if the DC is in another process, or if it refuses the sender.
  virtual std::shared_ptr<DirectReads> OpenReads(const Sender& /*sender*/) { return nullptr; }

  virtual Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec,
                                                       Deadline deadline) = 0;

  // The listener outlives the stream. A second stream of the same TC closes and drains the first.
  virtual Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                               Deadline deadline) = 0;

  // Returns at most n - 1 ascending keys that cut the table into pieces of about equal size. They are advice only. The
  // DC reads nothing but index levels for this, so the call is cheap.
  virtual Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                                     Deadline deadline) = 0;

  virtual Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) = 0;

  // Returns counters of the DC's work and state (reads served, updates applied, duplicates, memory, ...). For people
  // and tests. The caller needs no Hello.
  virtual Result<std::vector<CounterValue>> Counters(Deadline deadline) = 0;
};

}  // namespace deut

#endif  // PROTOCOL_DATA_COMPONENT_H_
