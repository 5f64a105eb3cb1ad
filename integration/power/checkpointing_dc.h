// CheckpointingDc: a data component without a page store whose records survive the end of its incarnation. It is a
// DataComponentServer and a copy of every batch that the server has applied. To the TC it is a DC whose stable
// position rises, so the redo start advances and the TC removes log segments.
//
// States of a batch: applied -> stable (at a checkpoint: after every kBatchesPerCheckpoint batches, or by a call of
// Checkpoint). A loss of power keeps all stable batches and, of the rest, a prefix whose length the seed determines.
// A DC may therefore come back with more than it promised, never with less. A new incarnation is a new
// DataComponentServer that applies the kept batches again.
// A test whose DC has a page store gives it the same FaultyDisk as the log, and uses no KeptPages.
// Thread-safety: as DataComponent; KeptPages has its own mutex. Ownership: KeptPages outlives the DCs.
#ifndef INTEGRATION_POWER_CHECKPOINTING_DC_H_
#define INTEGRATION_POWER_CHECKPOINTING_DC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/server/data_component_server.h"
#include "protocol/data_component.h"

namespace deut::power {

// The part of a CheckpointingDc that survives a loss of power: its records and its identity.
class KeptPages {
 public:
  explicit KeptPages(Runtime& runtime);

  // REQUIRES: no DC exists.
  void LosePower(uint64_t seed) DEUT_EXCLUDES(mutex_);
  Position stable() const DEUT_EXCLUDES(mutex_);

  // TakeBackup copies the content; Restore goes back to it. This breaks the contract above, as the restore of an
  // old backup does.
  struct Backup {
    std::vector<LogBatch> batches;
    size_t stable_batches = 0;
  };
  Backup TakeBackup() const DEUT_EXCLUDES(mutex_);
  // REQUIRES: no DC exists.
  void Restore(Backup backup) DEUT_EXCLUDES(mutex_);

 private:
  friend class CheckpointingDc;
  // A checkpoint follows after this many batches.
  static constexpr uint64_t kBatchesPerCheckpoint = 3;

  void Applied(const LogBatch& batch) DEUT_EXCLUDES(mutex_);
  std::vector<LogBatch> batches() const DEUT_EXCLUDES(mutex_);

  const std::unique_ptr<Storage> identity_;
  mutable Mutex mutex_;
  std::vector<LogBatch> batches_ DEUT_GUARDED_BY(mutex_);  // in the order in which they were applied
  size_t stable_batches_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t since_checkpoint_ DEUT_GUARDED_BY(mutex_) = 0;
  HelloRequest last_hello_ DEUT_GUARDED_BY(mutex_);
};

class CheckpointingDc final : public DataComponent {
 public:
  static Result<std::unique_ptr<DataComponent>> Open(KeptPages& pages, Runtime& runtime);

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override { server_->Submit(requests); }
  void Abandon(DataRequest* request) override { server_->Abandon(request); }
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override {
    return server_->OpenScan(sender, spec, deadline);
  }
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override {
    return server_->Partition(sender, table, n, deadline);
  }
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override {
    return server_->Tables(sender, deadline);
  }
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override { return server_->Counters(deadline); }

 private:
  CheckpointingDc(KeptPages& pages, std::unique_ptr<dc::DataComponentServer> server)
      : pages_(pages), server_(std::move(server)) {}
  // Applies the kept batches to the new server.
  Status Replay();

  KeptPages& pages_;
  const std::unique_ptr<dc::DataComponentServer> server_;
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_CHECKPOINTING_DC_H_
