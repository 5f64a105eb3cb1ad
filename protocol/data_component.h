// DataComponent: the one interface between a transaction component and a data component (architecture section 6).
// Implementations: the DC itself (dc/server), a gRPC client to a DC in another process (grpc_data_component.h), and a wrapper that
// gives an in-process DC lives of its own (in_process_data_component.h). A TC cannot tell them apart.
//
// Every request names who sends it and which life of the DC it is meant for (X3, X5):
//   FENCED             a higher TC epoch (or the same one with another nonce) has said Hello
//   WRONG_INCARNATION  the request is meant for an earlier life of this DC
//   UNAVAILABLE        no connection, or the DC is not ready
// Nothing here retries; the TC's dc link decides what is repeated.
// Thread-safety: all methods from any thread, unless said otherwise.
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

// Raised when messages change meaning. Peers with different numbers refuse each other with VERSION_MISMATCH.
constexpr uint32_t kProtocolVersion = 2;

// No TC comes to more starts. A DC that obeyed an epoch near overflow could never obey another TC, so Hello refuses larger ones.
constexpr TcEpoch kMaxTcEpoch{uint64_t{1} << 62};

// Who sends, and to which life of the DC.
struct Sender {
  TcId tc;
  TcEpoch epoch;
  uint64_t nonce = 0;  // drawn at TC start; tells two TCs of the same epoch apart (X5)
  DcIncarnation incarnation;
};

struct TableInfo {
  TableId id;
  std::string name;
  // T1: ids are never reused, so of the tables that were dropped a list has the one with the highest id; it has no name.
  bool dropped = false;
  uint64_t records = 0;  // approximate
  uint64_t bytes = 0;    // approximate
};

// The TC instance that a DC obeys (X5). Epoch 0: none has said Hello yet.
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
  // The DC that the TC's log knows; 0 = none yet. Another DC refuses with WRONG_STATE before it makes anything durable.
  DcId expected_dc = {};
  // The DC only answers: it makes nothing durable, drains nothing, and does not compare the epoch. Positions may still rise afterwards. A TC
  // asks like this while it has not decided to start.
  bool inquiry = false;
  // How far the sender's log is durable, as in LogBatch::durable.
  Lsn log_durable = {};
  // The inquiry's answer that the TC has accepted. The DC refuses with UNAVAILABLE, before it makes anything durable, if it differs from that by
  // now: the TC asks again and decides anew. Of a TC that the DC obeys already only incarnation and `obeyed` are compared, as its own batches may
  // have been under way. None: nothing is compared.
  std::optional<HelloBasis> decided_on = {};
};

// Positions are of the incarnation that answers. They say nothing about another one, however alike its number is (X3).
struct HelloAnswer {
  DcId dc;
  DcIncarnation incarnation;
  IncarnationNumber number = {};  // for people
  ObeyedTc obeyed = {};           // the sender itself, unless it was an inquiry
  // X4. The log of `obeyed` was durable up to here, at the least: as that TC has last said, and the DC remembers. 0: it has said nothing.
  Lsn log_durable = {};
  Position applied;
  Position stable;
  uint64_t free_bytes = 0;
  std::vector<TableInfo> tables;
};

enum class Direction : uint8_t { kAscending, kDescending };

// A stretch of keys: low <= key < high. An empty low is below every key; an empty high is above every key.
struct KeyRange {
  std::string low;
  std::string high;
  bool Contains(std::string_view key) const { return key >= low && (high.empty() || key < high); }
};

struct DataRequest;

// Told in place of `DataRequest::done` that a request is answered. Called once, on any thread, perhaps inside Submit; must not block.
// The request is the caller's again from this call on.
class DataRequestListener {
 public:
  virtual void OnAnswered(DataRequest* request) = 0;

 protected:
  ~DataRequestListener() = default;
};

// One request of the Data stream: a point read or a short scan. The caller owns it and everything its views point to until `done`
// is set (or the listener told) or Abandon has returned. Filled in place; `answer` keeps its buffer when the request is reused.
struct DataRequest {
  enum class Kind : uint8_t { kRead, kScan };

  Kind kind = Kind::kRead;
  Sender sender;
  TableId table;
  std::string_view key;  // kRead
  // kScan: [low, high) as in KeyRange, in key order of `direction`, until a limit is reached. At least one record is returned if the DC
  // comes to one; it looks at a bounded number of pages, which may all be empty, and then answers what it covered (S4): perhaps no
  // record, but always something of the range. limit_records 0 = no limit of records.
  std::string_view low;
  std::string_view high;
  Direction direction = Direction::kAscending;
  uint32_t limit_records = 0;
  uint32_t limit_bytes = 64 << 10;

  Status status;
  RecordBatch answer;  // kRead: 0 or 1 record
  DcIncarnation answered_by;
  // kScan: the stretch the answer speaks for (not its last record). `complete`: all of [low, high). Otherwise ascending: [low, covered);
  // descending: [covered, high). The covered key is where the next request resumes.
  bool complete = false;
  std::string covered;
  Event done;
  // Memory has just been looked at in vain (DirectReads): who is asked next need not look there first.
  bool on_disk = false;
  // Optional; a server answers its peer from here, out of order, without a thread that waits for each request.
  DataRequestListener* listener = nullptr;

  // Implementations of DataComponent end a request with this and nothing else, after all of the answer is in place, and do not touch
  // the request afterwards.
  void Finish(Runtime& runtime) {
    if (listener != nullptr) {
      listener->OnAnswered(this);
    } else {
      done.Signal(runtime);
    }
  }
};

// Reads of one sender from one life of a DC in this process, answered on the reader's own thread. What it is bound to is fixed when it is opened: it
// answers while that life obeys that sender, and never afterwards (X3, X5), so that a request need not be asked who sends it, and to which life.
// Thread-safety: any thread. It may outlive its DC.
class DirectReads {
 public:
  virtual ~DirectReads() = default;
  enum class Answered : uint8_t {
    kAll,   // each request has its status and its answer, as from Submit
    kSome,  // so have those of which `on_disk` is false; the others are to be asked by Submit
    kNone,  // nothing happened: the sender is not obeyed any more, or the life has ended
  };
  // Of the requests `sender`, `answered_by`, `done` and `listener` are not looked at and not touched. Several point reads behind one another take
  // less time than one by one.
  virtual Answered TryAnswer(absl::Span<DataRequest* const> requests) = 0;
};

struct ApplyAck {
  DcIncarnation incarnation;
  Position applied;  // everything up to here is in this life's memory
  Position
      stable;  // everything up to here survives the DC (X6); falls back to what both checkpoint generations hold (S2)
  uint64_t free_bytes = 0;
};

// Called on threads of the implementation; must not block. OnClosed is the last call, exactly once: when the stream breaks, is replaced
// or its DC ends, at the latest while the stream is being destroyed.
class ApplyLogListener {
 public:
  virtual ~ApplyLogListener() = default;
  virtual void OnAck(const ApplyAck& ack) = 0;
  virtual void OnClosed(const Status& status) = 0;
};

// The TC's one stream of log batches (X5). Destroying it closes it and waits until the listener is no longer called.
class ApplyLogStream {
 public:
  virtual ~ApplyLogStream() = default;
  // Sends a batch that starts at or before what was sent or applied before, and leaves no gap. Blocks while the stream's window is full.
  // One thread at a time. An error means that the stream is closed.
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
  // As in DataRequest: what this and all earlier batches of the stream speak for.
  bool complete = false;
  std::string covered;
};

// A bulk scan (S4): the DC reads the tree only inside what was granted. One thread at a time. Destroying it cancels it.
class ScanStream {
 public:
  virtual ~ScanStream() = default;
  // Extends the grant to the key `bound` (ascending: exclusive upper; descending: inclusive lower; empty = to the end of the scan's
  // range) and by `bytes` of answer. Bounds only move forward.
  virtual Status Grant(std::string_view bound, uint64_t bytes) = 0;
  // The next batch; waits for one. A batch whose `covered` has reached the granted bound needs a further grant before Next.
  virtual Status Next(ScanBatch* batch, Deadline deadline) = 0;
  // What is granted is read and sent without being asked for by Next: granting ahead saves waiting.
  virtual bool ReadsAhead() const { return false; }
};

struct CounterValue {
  std::string name;
  uint64_t value = 0;
};

class DataComponent {
 public:
  virtual ~DataComponent() = default;

  // Makes (TC, epoch, nonce) durable, drains what older epochs have in flight, then answers (X5). WRONG_STATE, naming both, with nothing changed:
  // the DC belongs to another TC, or the TC expects another DC.
  virtual Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) = 0;

  // Starts all requests; each one's `done` is set when its answer is in place, on any thread, perhaps before Submit returns.
  virtual void Submit(absl::Span<DataRequest* const> requests) = 0;
  // After it returns the implementation no longer touches `request` (its `done` may or may not have been set).
  virtual void Abandon(DataRequest* request) = 0;

  // Null: there are none, as it is in another process, or the sender is refused.
  virtual std::shared_ptr<DirectReads> OpenReads(const Sender& /*sender*/) { return nullptr; }

  virtual Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec,
                                                       Deadline deadline) = 0;

  // The listener outlives the stream. A second stream of the same TC closes and drains the first.
  virtual Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                               Deadline deadline) = 0;

  // At most n - 1 keys, ascending, that cut the table into pieces of about equal size; from the index levels only, so cheap (advice).
  virtual Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                                     Deadline deadline) = 0;

  // Makes everything up to `up_to` stable; answers the stable position.
  virtual Result<Position> Checkpoint(const Sender& sender, Position up_to, Deadline deadline) = 0;

  virtual Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) = 0;

  // What the DC has done and holds (reads served, updates applied, duplicates, memory, ...). For people and tests; needs no Hello.
  virtual Result<std::vector<CounterValue>> Counters(Deadline deadline) = 0;
};

}  // namespace deut

#endif  // PROTOCOL_DATA_COMPONENT_H_
