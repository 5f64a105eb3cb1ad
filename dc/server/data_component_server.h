// DataComponentServer: a data component in this process; one object is one life (incarnation) of it. It answers the calls of
// protocol/data_component.h by itself; a gRPC service in front of it makes it a daemon.
//
// What is on disk: who it is, which life this is and which TC it obeys (state_file.h); and, in the directory `pages`, the records as of the
// last checkpoints (dc/checkpoint). A new life begins with what the newest holds; redo brings the rest.
// Life: Open takes the data directory (lock, checks), reads what is there, makes the new incarnation durable, then serves.
//   The destructor requires that no call is running and that the streams it gave out are destroyed. Direct reads may be running: it waits for
//   them, and they answer nothing afterwards.
// Who may ask what, and fencing: fencing.h. Streams: apply_stream.h, bulk_scan.h. Reads and short scans run on the calling thread, if memory can
// answer them, else on threads of their own (miss_pool.h).
// Thread-safety: all methods from any thread. Reads, scans and applying take no lock; Hello and opening a log stream do.
// Overload: the answer to an ApplyLog batch carries the free bytes of the disk; 0 when memory is beyond its budget and nothing more can be
//   swapped out. The TC stops accepting puts when it runs low (rule X7); what it has accepted is always applied.
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
#include "dc/record_ops/record_operations.h"
#include "dc/server/applied_position.h"
#include "dc/server/apply_stream.h"
#include "dc/server/call_phases.h"
#include "dc/server/checkpoint_driver.h"
#include "dc/server/fencing.h"
#include "dc/server/miss_pool.h"
#include "dc/server/state_file.h"
#include "dc/server/state_keeper.h"
#include "protocol/data_component.h"

namespace deut::dc {

struct DataComponentOptions {
  std::string directory;  // made if it is not there
  RecordOperationsOptions records;
  CheckpointPolicy checkpoints;
  int miss_threads = 16;
  // Threads that apply a large batch of the log together, the stream's with them; 0: as many as this machine has processors, kMostApplyThreads at
  // most, whatever part of them is this process's. It decides records.apply_helpers.
  uint32_t apply_threads = 0;
  static constexpr uint32_t kMostApplyThreads = 8;
  // An operation of the disk that takes longer is logged and counted; one that takes so long ends the process, as records.on_failure decides
  // (0: never).
  Duration disk_slow_after = std::chrono::seconds(5);
  Duration disk_timeout = std::chrono::seconds(60);
};

// A data directory that is this process's.
struct ClaimedDirectory {
  std::unique_ptr<WatchedStorage> disk;
  std::unique_ptr<FileLock> lock;
  DcState state;       // of the incarnation that begins
  bool saved = false;  // `state` is durable: at once in a new folder, elsewhere when the pages were found good
};

class DataComponentServer final : public DataComponent {
 public:
  // The two steps of Open: who it is, quickly; and then what it holds, which takes as long as there is much to look at.
  static Result<ClaimedDirectory> Claim(const DataComponentOptions& options, Storage& storage, Runtime& runtime);
  // `progress`: may be null; CANCELLED if it says that the start was given up.
  static Result<std::unique_ptr<DataComponentServer>> Recover(const DataComponentOptions& options, Runtime& runtime,
                                                              ClaimedDirectory claimed, RecoveryProgress* progress);
  // UNAVAILABLE if another process has the directory; CORRUPTION or VERSION_MISMATCH if its state or its pages cannot be read, and nothing is
  // changed then; IO_ERROR if the new incarnation cannot be made durable.
  // `runtime` and `storage` outlive it.
  static Result<std::unique_ptr<DataComponentServer>> Open(const DataComponentOptions& options, Storage& storage,
                                                           Runtime& runtime);
  ~DataComponentServer() override;

  DcId id() const { return id_; }
  DcIncarnation incarnation() const { return fencing_.incarnation(); }
  // UNAVAILABLE while operations of the disk do not come back (disk_slow_after), with how many, and since when.
  Status CheckDisk() const;
  // What it serves, without asking who asks: for measurements.
  RecordOperations& operations() { return *operations_; }

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override;
  std::shared_ptr<DirectReads> OpenReads(const Sender& sender) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<Position> Checkpoint(const Sender& sender, Position up_to, Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  class Reads;

  DataComponentServer(const DataComponentOptions& options, Runtime& runtime, ClaimedDirectory claimed,
                      std::unique_ptr<RecordOperations> operations);

  Status Obey(const HelloRequest& request) DEUT_REQUIRES(mutex_);
  // X4: that this is what the sender was told, and has decided on.
  Status CheckBasis(const HelloRequest& request) DEUT_REQUIRES(mutex_);
  void CloseLogStream(const Status& reason) DEUT_REQUIRES(mutex_);
  // Point reads of one sender, which was admitted; at most kReadsTogether.
  void SubmitReads(absl::Span<DataRequest* const> requests);
  // What memory says of them; `on_disk` of the rest. True: all of them.
  bool TryReads(absl::Span<DataRequest* const> requests);
  // Told as it is, or later, when it was read from the disk, which `on_disk` says that it must.
  void Answer(DataRequest* request);
  // With `missing`: does not block, and says if a page is not in memory; then nothing was done.
  Status Execute(DataRequest* request, bool* missing);
  Status ExecuteScan(DataRequest* request, bool* missing);
  void AnswerMissed(DataRequest* request);
  uint64_t FreeBytes();

  Runtime& runtime_;
  const std::unique_ptr<WatchedStorage> disk_;
  std::atomic<uint64_t> free_bytes_{0};  // as it was last seen
  const DataComponentOptions options_;
  const std::unique_ptr<FileLock> lock_;
  const DcId id_;
  const IncarnationNumber number_;
  StateKeeper state_;
  const std::unique_ptr<RecordOperations> operations_;
  Fencing fencing_;
  AppliedPosition applied_;
  const ApplyEnvironment apply_environment_;
  CallPhases submits_;

  CheckpointDriver checkpoints_;  // its thread uses those above
  Mutex mutex_;                   // Hello and opening log streams
  std::shared_ptr<ApplyStream> log_stream_ DEUT_GUARDED_BY(mutex_);
  MissPool misses_;  // the last member: its threads use the others
};

}  // namespace deut::dc

#endif  // DC_SERVER_DATA_COMPONENT_SERVER_H_
