#include "dc/checkpoint/checkpoint_world_fixture.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/checkpoint_set.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

// Hundreds of starts would log little that is new.
class Quiet final : public LogSink {
 public:
  void Write(LogLevel /*level*/, std::string_view /*text*/) override {}
};

Quiet quiet;

}  // namespace

Result<std::unique_ptr<CheckpointIncarnation>> CheckpointIncarnation::Open(Storage& storage,
                                                                           const std::string& directory, DcId dc,
                                                                           const RecoveryOptions& options,
                                                                           const CheckpointLineagesOptions& lineages) {
  DEUT_ASSIGN_OR_RETURN(RecoveredPages recovered, RecoverPages(storage, RealRuntime(), directory, dc, options));
  const std::vector<RecoveredTable> tables = std::move(recovered.tables);
  const PageId last_page = recovered.last_page;
  std::unique_ptr<CheckpointIncarnation> incarnation(new CheckpointIncarnation(std::move(recovered)));
  DEUT_RETURN_IF_ERROR(RecoverTables(RealRuntime(), directory, tables, last_page, options, incarnation->trees(),
                                     SmallPages(), &incarnation->tables));
  DEUT_ASSIGN_OR_RETURN(incarnation->loader,
                        PageLoader::Create(RealRuntime(), incarnation->tables, incarnation->domain, *incarnation->store,
                                           /*damaged=*/nullptr, {.threads = 1}));
  const CheckpointEnvironment environment{RealRuntime(),
                                          storage,
                                          directory,
                                          dc,
                                          DcIncarnation(1),
                                          incarnation->trees(),
                                          incarnation->gate,
                                          incarnation->tables,
                                          *incarnation->store,
                                          *incarnation->loader,
                                          [incarnation = incarnation.get()] { ++incarnation->waits_for_memory; },
                                          lineages};
  DEUT_ASSIGN_OR_RETURN(incarnation->checkpointer, Checkpointer::Create(environment, incarnation->found));
  return incarnation;
}

CheckpointIncarnation::CheckpointIncarnation(RecoveredPages recovered)
    : found(recovered.found),
      store(std::move(recovered.store)),
      pages(std::move(recovered.pages)),
      tables(RealRuntime(), trees(), SmallPages()) {
  pages->KeepFreedIds();
}

CheckpointWorld::CheckpointWorld(uint64_t seed, const CheckpointLineagesOptions& lineages)
    : log_sink_(SetLogSink(&quiet)), lineages_(lineages), disk_(RealRuntime(), seed), storage_(disk_.Mount()) {
  const Status begun = Begin();
  EXPECT_TRUE(begun.ok()) << begun.ToString();
}

CheckpointWorld::~CheckpointWorld() {
  testing::SetPointHandler({});
  SetLogSink(log_sink_);
}

RecoveryOptions CheckpointWorld::Options() {
  RecoveryOptions options;
  options.max_pages = 1 << 16;
  options.store.segment_bytes = 64 << 10;
  options.store.append_buffer_bytes = 64 << 10;
  options.threads = 3;
  return options;
}

void CheckpointWorld::Crash(uint64_t seed) {
  disk_.Crash(seed);
  incarnation_.reset();
  storage_ = disk_.Mount();
}

Status CheckpointWorld::Begin(const RecoveryOptions& options) {
  DEUT_ASSIGN_OR_RETURN(incarnation_, CheckpointIncarnation::Open(*storage_, directory_, kDc, options, lineages_));
  for (uint64_t i = incarnation_->found.position.commit.value; i < log_.size(); ++i) DEUT_RETURN_IF_ERROR(Apply(i));
  return Status::Ok();
}

Status CheckpointWorld::Apply(size_t index) {
  const Entry& entry = log_[index];
  CheckpointIncarnation& incarnation = *incarnation_;
  if (entry.kind == Entry::Kind::kCreate) return incarnation.tables.Create(entry.table, entry.key).status();
  if (entry.kind == Entry::Kind::kDrop) return incarnation.tables.Drop(entry.table).status();
  for (;;) {
    {
      const ReclamationDomain::Guard guard(incarnation.domain);
      BwTree* const tree = incarnation.tables.FindTree(entry.table);
      if (tree == nullptr) return Status::Ok();  // the table is dropped later in the log
      const Version version = V(index + 1);
      DEUT_ASSIGN_OR_RETURN(const BwTree::Outcome outcome, entry.kind == Entry::Kind::kPut
                                                               ? tree->Put(entry.key, entry.value, version)
                                                               : tree->Delete(entry.key, version));
      if (outcome != BwTree::Outcome::kNotLoaded) return Status::Ok();
    }
    DEUT_RETURN_IF_ERROR(incarnation.loader->Load(entry.table, Target(entry.key, Side::kAt)));
  }
}

void CheckpointWorld::Do(Entry entry) {
  log_.push_back(std::move(entry));
  const Status status = Apply(log_.size() - 1);
  ASSERT_TRUE(status.ok()) << status.ToString();
}

void CheckpointWorld::Create(TableId table) {
  Do({Entry::Kind::kCreate, table, Concat("table ", table.value), {}});
  records_[table];
}

void CheckpointWorld::Drop(TableId table) {
  Do({Entry::Kind::kDrop, table, {}, {}});
  records_.erase(table);
}

void CheckpointWorld::Put(uint64_t number, const std::string& value, TableId table) {
  Do({Entry::Kind::kPut, table, KeyOf(number), value});
  records_[table][KeyOf(number)] = value;
}

void CheckpointWorld::Delete(uint64_t number, TableId table) {
  Do({Entry::Kind::kDelete, table, KeyOf(number), {}});
  records_[table].erase(KeyOf(number));
}

void CheckpointWorld::Fill(uint64_t first, uint64_t last, int round, TableId table) {
  for (uint64_t i = first; i < last; ++i) Put(i, Concat("value of round ", round, " for ", i), table);
}

void CheckpointWorld::Evict(TableId table) {
  class Evictor final : public PageVisitor {
   public:
    explicit Evictor(BwTree& tree) : tree_(tree) {}
    void Visit(const VisitedPage& page) override { (void)tree_.Evict(page); }

   private:
    BwTree& tree_;
  };
  const ReclamationDomain::Guard guard(incarnation_->domain);
  BwTree& tree = *incarnation_->tables.FindTree(table);
  Evictor evictor(tree);
  for (BwTree::Walk walk; !walk.complete;) tree.VisitPages(/*level=*/0, &walk, &evictor);
}

Result<CheckpointWorld::Records> CheckpointWorld::Scan(TableId table) {
  Records found;
  ScanCursor cursor;
  while (!cursor.complete) {
    RecordBatch batch;
    ScanBudget budget;
    bool missing = false;
    {
      const ReclamationDomain::Guard guard(incarnation_->domain);
      BwTree* const tree = incarnation_->tables.FindTree(table);
      if (tree == nullptr) return DEUT_ERROR(kNotFound, "no table ", table.value);
      missing = !tree->ScanAscending(&cursor, &budget, &batch);
    }
    for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) {
      found[std::string(it.record().key)] = it.record().value;
    }
    const std::string low = cursor.low;
    if (missing) DEUT_RETURN_IF_ERROR(incarnation_->loader->Load(table, Target(low, Side::kAt)));
  }
  return found;
}

void CheckpointWorld::ExpectRight() {
  std::vector<TableId> live;
  for (const auto& [table, records] : records_) {
    live.push_back(table);
    const auto found = Scan(table);
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_TRUE(*found == records) << "table " << table.value << ": " << found->size() << " records, not "
                                   << records.size();
  }
  EXPECT_EQ(incarnation_->tables.LiveTables(), live);
}

std::vector<std::string> CheckpointWorld::Names() {
  const auto names = storage_->List(directory_);
  DEUT_CHECK(names.ok());
  return *names;
}

CheckpointWorld::Files CheckpointWorld::ReadFiles() {
  Files files;
  for (const std::string& name : Names()) {
    const auto file = storage_->Open(Path(name), {});
    DEUT_CHECK(file.ok());
    std::string bytes((*file)->Size().value(), '\0');
    DEUT_CHECK(*(*file)->Read(0, bytes.data(), bytes.size()) == bytes.size());
    files[name] = std::move(bytes);
  }
  return files;
}

void CheckpointWorld::Remove(const std::string& name) { ASSERT_TRUE(storage_->Remove(Path(name)).ok()); }

void CheckpointWorld::Write(const std::string& name, const std::string& bytes) {
  const auto file = storage_->Open(Path(name), {.create = true, .writable = true});
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Truncate(0).ok());
  ASSERT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
}

std::vector<uint64_t> CheckpointWorld::Checkpoints() {
  const auto found = FindCheckpoints(*storage_, directory_);
  DEUT_CHECK(found.ok());
  std::vector<uint64_t> numbers;
  for (const CheckpointNumber number : *found) numbers.push_back(number.value);
  return numbers;
}

}  // namespace deut::dc
