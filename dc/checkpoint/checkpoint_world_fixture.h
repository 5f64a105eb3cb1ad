// CheckpointWorld: tables on a faulty disk, the log of all changes to them, and incarnations that begin with recovery
// and take checkpoints. For tests. Thread-safety: one thread.
#ifndef DC_CHECKPOINT_CHECKPOINT_WORLD_FIXTURE_H_
#define DC_CHECKPOINT_CHECKPOINT_WORLD_FIXTURE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/observe/log.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/smo_gate.h"
#include "dc/checkpoint/checkpointer.h"
#include "dc/checkpoint/recovery.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_store/segment_store.h"
#include "dc/tables/table_registry.h"

namespace deut::dc {

// The objects that live from a recovery to the end of the process.
class CheckpointIncarnation {
 public:
  static Result<std::unique_ptr<CheckpointIncarnation>> Open(Storage& storage, const std::string& directory, DcId dc,
                                                             const RecoveryOptions& options,
                                                             const CheckpointLineagesOptions& lineages = {});

  BwTreeEnvironment trees() { return {*pages, domain, consolidation, &gate, store.get()}; }

  // The members are in order of construction; they are destroyed in the opposite order.
  const RecoveredCheckpoints found;
  const std::unique_ptr<SegmentStore> store;
  const std::unique_ptr<MappingTable> pages;
  ReclamationDomain domain;
  SmoGate gate;
  std::atomic<uint64_t> consolidation{0};
  TableRegistry tables;
  std::unique_ptr<PageLoader> loader;
  std::unique_ptr<Checkpointer> checkpointer;
  uint64_t waits_for_memory = 0;  // calls of wait_for_memory by the checkpointer

 private:
  explicit CheckpointIncarnation(RecoveredPages recovered);
};

class CheckpointWorld {
 public:
  static constexpr DcId kDc{7};
  static constexpr TableId kTable{3};
  using Records = std::map<std::string, std::string>;
  using Files = std::map<std::string, std::string>;

  explicit CheckpointWorld(uint64_t seed = 1, const CheckpointLineagesOptions& lineages = {});
  ~CheckpointWorld();

  // Ends the incarnation. The disk stays as it is, or becomes what a crash leaves of it.
  void End() { incarnation_.reset(); }
  void Crash(uint64_t seed);
  // Begins another incarnation; redo applies the log behind its checkpoint.
  Status Begin(const RecoveryOptions& options = Options());
  static RecoveryOptions Options();

  // --- Changes, which are logged.
  void Create(TableId table);
  void Drop(TableId table);
  void Put(uint64_t number, const std::string& value, TableId table = kTable);
  void Delete(uint64_t number, TableId table = kTable);
  // Puts the records [first, last) with values that name the round.
  void Fill(uint64_t first, uint64_t last, int round = 0, TableId table = kTable);

  Status Take(const Checkpointer::RecordKept& record_kept = nullptr) {
    return incarnation_->checkpointer->Take([this] { return applied(); }, record_kept);
  }
  // Evicts all leaves that are written.
  void Evict(TableId table = kTable);

  // Position of the last change.
  Position applied() const { return Position{Lsn(log_.size()), 0}; }
  Position stable() const { return incarnation_->checkpointer->stable(); }

  // --- The current content.
  Result<Records> Scan(TableId table = kTable);
  void ExpectRight();

  Files ReadFiles();
  std::vector<std::string> Names();
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Remove(const std::string& name);
  void Write(const std::string& name, const std::string& bytes);
  // Returns the numbers of the checkpoint files, the newest first.
  std::vector<uint64_t> Checkpoints();

  CheckpointIncarnation& incarnation() { return *incarnation_; }
  bool alive() const { return incarnation_ != nullptr; }
  FaultyDisk& disk() { return disk_; }
  Storage& storage() { return *storage_; }
  const std::string& directory() const { return directory_; }

 private:
  struct Entry {
    enum class Kind : uint8_t { kCreate, kDrop, kPut, kDelete };
    Kind kind;
    TableId table;
    std::string key;
    std::string value;
  };
  void Do(Entry entry);
  // Applies entry `index` of the log, which is at position index + 1.
  Status Apply(size_t index);

  LogSink* const log_sink_;  // the log sink before this test
  const CheckpointLineagesOptions lineages_;
  const std::string directory_ = "/pages";
  FaultyDisk disk_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<CheckpointIncarnation> incarnation_;
  std::vector<Entry> log_;
  std::map<TableId, Records> records_;
};

}  // namespace deut::dc

#endif  // DC_CHECKPOINT_CHECKPOINT_WORLD_FIXTURE_H_
