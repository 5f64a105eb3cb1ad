// DataComponentServer: a data component in this process; one object is one incarnation of it. It answers the calls of
// protocol/data_component.h itself; with a gRPC service in front of it, it is a daemon.
//
// On disk: the DC's identity, its incarnation and the TC that it obeys (state_file.h); and, in the directory `pages`,
// the records as of the last checkpoints (dc/checkpoint). A new incarnation begins with the newest checkpoint; redo
// brings the rest.
// Life cycle: Open takes the data directory (lock, checks), recovers, makes the new incarnation durable, then serves.
// The destructor requires that no call is running and that the streams it created are destroyed. Direct reads may be
// running: it waits for them, and they answer nothing afterwards.
//
// Admission and fencing of senders: fencing.h. Streams: apply_stream.h, bulk_scan.h. Reads and short scans run on the
// calling thread as far as memory can answer them. One that needs a page from the disk waits without a thread, and goes
// on on the thread that has loaded the page (missed_requests.h).
// Thread-safety: all methods from any thread. Reads, scans and applying take no lock; Hello and opening a log stream
// do.
// Ownership: owns the directory's lock, the records and all threads; borrows runtime and storage.
// Overload: the answer to an ApplyLog batch carries the free bytes of the disk, less the reserve and the unflushed
// updates. It is 0 when memory exceeds its budget and no more pages can be evicted. The TC stops accepting puts when
// this figure runs low (rule X7); updates that it has accepted are always applied.
#ifndef DC_SERVER_DATA_COMPONENT_SERVER_H_
#define DC_SERVER_DATA_COMPONENT_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/io/watched_storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/checkpoint/recovery_progress.h"
#include "dc/server/applied_position.h"
#include "dc/server/apply_stream.h"
#include "dc/server/call_grace_period.h"
#include "dc/server/checkpoint_driver.h"
#include "dc/server/fencing.h"
#include "dc/server/missed_requests.h"
#include "dc/server/state_file.h"
#include "dc/server/state_keeper.h"
#include "dc/store/record_store.h"
#include "protocol/data_component.h"

namespace deut::dc {

struct DataComponentOptions {
  std::string directory;  // created if it does not exist
  RecordStoreOptions records;
  CheckpointPolicy checkpoints;
  // Number of threads that apply a large batch of the log together, including the stream's own. 0: the number of this
  // machine's processors, at most kMaxApplyThreads, whatever share of them this process has. It determines
  // records.apply_helpers.
  uint32_t apply_threads = 0;
  static constexpr uint32_t kMaxApplyThreads = 8;
  // A disk operation that takes longer than disk_slow_after is logged and counted. One that takes longer than
  // disk_timeout ends the process, through records.on_failure. 0: never.
  Duration disk_slow_after = std::chrono::seconds(5);
  Duration disk_timeout = std::chrono::seconds(60);
};

// A data directory that this process has claimed.
struct ClaimedDirectory {
  std::unique_ptr<WatchedStorage> disk;
  std::unique_ptr<FileLock> lock;
  DcState state;       // state of the new incarnation
  bool saved = false;  // `state` is durable: at once in a new folder, else once the pages were found intact
};

class DataComponentServer final : public DataComponent {
 public:
  // The two steps of Open. Claim determines the DC's identity, quickly. Recover loads the records, which takes time
  // in proportion to the folder's segments and inner pages.
  static Result<ClaimedDirectory> Claim(const DataComponentOptions& options, Storage& storage, Runtime& runtime);
  // `progress` may be null. CANCELLED if its `given_up` is set.
  static Result<std::unique_ptr<DataComponentServer>> Recover(const DataComponentOptions& options, Runtime& runtime,
                                                              ClaimedDirectory claimed, RecoveryProgress* progress);
  // UNAVAILABLE: another process has the directory. CORRUPTION or VERSION_MISMATCH: its state or its pages cannot be
  // read; nothing is changed then. IO_ERROR: the new incarnation cannot be made durable. `runtime` and `storage`
  // outlive the server.
  static Result<std::unique_ptr<DataComponentServer>> Open(const DataComponentOptions& options, Storage& storage,
                                                           Runtime& runtime);
  ~DataComponentServer() override;

  DcId id() const { return id_; }
  DcIncarnation incarnation() const { return fencing_.incarnation(); }
  // UNAVAILABLE while disk operations hang (disk_slow_after), with their number and the age of the oldest.
  Status CheckDisk() const;
  // The records, without a check of the sender: for measurements.
  RecordOperations& operations() { return operations_; }
  RecordStore& records() { return *records_; }
  // Takes checkpoints until every applied update up to `up_to` is stable. Returns the stable position. For tests.
  Result<Position> TakeCheckpoints(Position up_to) { return checkpoints_.TakeUpTo(up_to); }

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
  class Reads;

  DataComponentServer(const DataComponentOptions& options, Runtime& runtime, ClaimedDirectory claimed,
                      std::unique_ptr<RecordStore> records);

  Status AcceptTc(const HelloRequest& request) DEUT_REQUIRES(mutex_);
  // X4: checks that the DC's state is still the one on which the sender has decided.
  Status CheckBasis(const HelloRequest& request) DEUT_REQUIRES(mutex_);
  void CloseLogStream(const Status& reason) DEUT_REQUIRES(mutex_);
  // Answers point reads of one admitted sender; at most kMaxReadsPerGroup.
  void SubmitReads(absl::Span<DataRequest* const> requests);
  // Answers the requests that memory can answer, and sets `missed_in_memory` of the rest. True: all are answered.
  bool TryReads(absl::Span<DataRequest* const> requests);
  // Finishes the request now, or parks it if its `missed_in_memory` is set. `scan`: null, or the state of a scan that
  // has met a page that is not in memory.
  void Answer(DataRequest* request, RecordOperations::ScanState* scan);
  // Begins the request, and does not block. *missing: a page is not in memory. A read has done nothing then. A scan has
  // answered a part, and `scan` has its state.
  Status Execute(DataRequest* request, RecordOperations::ScanState* scan, bool* missing);
  Status BeginScan(DataRequest* request, RecordOperations::ScanState* scan, bool* missing);
  Result<RecordOperations::ScanStop> ContinueScan(DataRequest* request, RecordOperations::ScanState* scan,
                                                  const RecordOperations::ScanTurn& turn);
  // As MissedRequests::Continue.
  bool ContinueMissed(DataRequest* request, RecordOperations::ScanState* scan, bool missing, LoadWaiter* waiter);
  uint64_t FreeBytes();

  Runtime& runtime_;
  const std::unique_ptr<WatchedStorage> disk_;
  std::atomic<uint64_t> free_bytes_{0};  // as last computed
  const DataComponentOptions options_;
  const std::unique_ptr<FileLock> lock_;
  const DcId id_;
  const IncarnationNumber number_;
  StateKeeper state_;
  const std::unique_ptr<RecordStore> records_;
  RecordOperations& operations_;  // of records_
  Fencing fencing_;
  AppliedPosition applied_;
  const ApplyEnvironment apply_environment_;
  CallGracePeriod submits_;

  CheckpointDriver checkpoints_;  // its thread uses the members above
  Mutex mutex_;                   // held by Hello and by opening log streams
  std::shared_ptr<ApplyStream> log_stream_ DEUT_GUARDED_BY(mutex_);
  MissedRequests misses_;  // the last member: its requests use the others
};

}  // namespace deut::dc

#endif  // DC_SERVER_DATA_COMPONENT_SERVER_H_
