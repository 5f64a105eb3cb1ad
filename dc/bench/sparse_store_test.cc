// The store that is made without a load is one that the data component could have written: all of it is intact, and a
// start, reads, checkpoints and the cleaner work.
#include "dc/bench/sparse_store.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/bench/bench_store.h"
#include "dc/bench/sparse_tree.h"
#include "dc/bwtree/base_page.h"
#include "dc/store/record_store.h"
#include "dc/verify/verify.h"
#include "gtest/gtest.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"

namespace deut::dc::bench {
namespace {

const std::string kFolder = "/dc";

// Small pages, so that a megabyte makes a tree of several levels.
SparseStoreOptions Small() {
  SparseStoreOptions options;
  options.bytes = 1 << 20;
  options.segment_bytes = 64 << 10;
  options.tree.leaf_page_bytes = 2048;
  options.tree.inner_page_bytes = 512;
  return options;
}

class SparseStoreTest : public ::testing::Test {
 protected:
  void Make(const SparseStoreOptions& options) {
    options_ = options;
    auto made = MakeSparseStore(*storage_, kFolder, options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    made_ = std::move(*made);
  }
  void Open() {
    store_.reset();
    RecordStoreOptions options;
    options.max_pages = 1 << 16;
    options.tree = options_.tree;
    options.store.segment_bytes = options.store.max_segment_bytes = options_.segment_bytes;
    options.cleaner = {.interval = Duration(), .bytes_per_second = 0};
    options.scrubber.bytes_per_second = 0;
    const RecordStore::Location home{.storage = *storage_,
                                     .directory = kFolder + "/pages",
                                     .dc = kSparseDc,
                                     .incarnation = DcIncarnation(1),
                                     .oldest_required = CheckpointNumber(1)};
    auto opened = RecordStore::Open(RealRuntime(), home, options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(*opened);
  }
  VerifyReport Verified() {
    auto report = VerifyDirectory(*storage_, RealRuntime(), kFolder, {.max_findings = 10'000});
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    return report.ok() ? std::move(*report) : VerifyReport();
  }
  uint64_t Counter(std::string_view name) {
    std::vector<CounterValue> counters;
    store_->AppendCounters(&counters);
    const auto found = std::ranges::find(counters, name, &CounterValue::name);
    EXPECT_NE(found, counters.end()) << name;
    return found == counters.end() ? 0 : found->value;
  }
  void Checkpoint() {
    const Status taken = store_->Checkpoint([this] { return Position{Lsn(lsn_), 1}; });
    ASSERT_TRUE(taken.ok()) << taken.ToString();
  }
  void Put(uint64_t record, Timestamp at) {
    const std::string key = SparseKey(record);
    const BenchValue value(record, at);
    LogBatch batch;
    batch.Append({.kind = LogEntryKind::kPut,
                  .position = Position{Lsn(++lsn_), 1},
                  .timestamp = at,
                  .table = kBenchTable,
                  .key = key,
                  .value = value});
    ASSERT_TRUE(store_->operations().ApplyBatch(batch, Position()).ok());
  }
  // Checks that the record has the value of this time.
  void ExpectRecord(uint64_t record, Timestamp at) {
    RecordBatch answer;
    const Status status = store_->operations().Read(kBenchTable, SparseKey(record), &answer);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(answer.size(), 1u) << record;
    EXPECT_EQ(RecordBatch::Iterator(answer).record().value, std::string_view(BenchValue(record, at))) << record;
  }
  void ExpectReadable() {
    for (const uint64_t record : made_.readable) ExpectRecord(record, kSparseVersion.timestamp);
  }

  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  SparseStoreOptions options_;
  SparseStore made_;
  std::unique_ptr<RecordStore> store_;
  uint64_t lsn_ = 1000;
};

TEST_F(SparseStoreTest, AllOfAStoreWithoutHolesIsIntact) {
  SparseStoreOptions options = Small();
  options.all_leaves = true;
  options.dead_every = 3;
  Make(options);
  const VerifyReport report = Verified();
  EXPECT_TRUE(report.clean()) << ReportText(report);
  EXPECT_TRUE(report.notes.empty()) << ReportText(report);
  ASSERT_EQ(report.checkpoints.size(), 2u);
  for (const CheckpointReport& checkpoint : report.checkpoints) {
    EXPECT_EQ(checkpoint.pages, made_.leaves + made_.inner_pages);
    EXPECT_EQ(checkpoint.unreached_pages, 0u);
    ASSERT_EQ(checkpoint.tables.size(), 1u);
    EXPECT_EQ(checkpoint.tables[0].records, made_.records);
    EXPECT_GE(checkpoint.tables[0].levels.size(), 4u) << "leaves, two levels below the root, and the root";
    EXPECT_EQ(checkpoint.tables[0].levels[0].pages, made_.leaves);
  }
  EXPECT_EQ(report.segments.size(), made_.segments);
}

TEST_F(SparseStoreTest, OnlyTheLeavesInHolesAreDamaged) {
  Make(Small());
  ASSERT_GT(made_.leaves, made_.readable.size());
  const VerifyReport report = Verified();
  for (const Finding& finding : report.findings) EXPECT_EQ(finding.what, Damaged::kPage) << finding.text;
  EXPECT_EQ(report.damages, made_.leaves - made_.readable.size());
  for (const CheckpointReport& checkpoint : report.checkpoints) {
    EXPECT_EQ(checkpoint.damages, made_.leaves - made_.readable.size());
    EXPECT_EQ(checkpoint.unreached_pages, 0u);
  }
}

TEST_F(SparseStoreTest, SizeIsTheWantedOneAndMostOfItIsHoles) {
  SparseStoreOptions options = Small();
  options.tree = BwTreeOptions();
  options.bytes = 32 << 20;
  options.segment_bytes = 512 << 10;
  for (const uint64_t dead_every : {0, 4}) {
    const std::string folder = kFolder + std::to_string(dead_every);
    options.dead_every = dead_every;
    auto made = MakeSparseStore(*storage_, folder, options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    EXPECT_NEAR(static_cast<double>(made->bytes), static_cast<double>(options.bytes), 2 << 20);
    EXPECT_NEAR(static_cast<double>(made->segments), 64, 5);
    EXPECT_LT(made->written_bytes, made->bytes / 20);
  }
}

TEST_F(SparseStoreTest, AStartReadsAllInnerPagesAndAnswersReads) {
  Make(Small());
  Open();
  EXPECT_EQ(Counter("recovery_checkpoint"), 2u);
  EXPECT_EQ(Counter("recovery_segments"), made_.segments);
  EXPECT_EQ(Counter("recovery_inner_pages"), made_.inner_pages);
  EXPECT_EQ(Counter("records"), made_.records) << "each leaf has as many as those that are read for the estimate";
  EXPECT_EQ(Counter("storage_bytes"), made_.bytes);
  ExpectReadable();
  RecordBatch answer;
  EXPECT_EQ(store_->operations().Read(kBenchTable, SparseKey(made_.records - 1), &answer), ErrorCode::kCorruption)
      << "the last leaf is a hole";
}

TEST_F(SparseStoreTest, UpdatesAreInTheNextCheckpoints) {
  Make(Small());
  Open();
  Checkpoint();
  const Timestamp later = BenchTimestamp(2);
  for (const uint64_t record : made_.readable) Put(record, later);
  Checkpoint();
  for (int start = 0; start < 2; ++start) {
    Open();
    EXPECT_EQ(Counter("recovery_checkpoint"), 4u);
    for (const uint64_t record : made_.readable) ExpectRecord(record, later);
  }
  store_.reset();
  const VerifyReport report = Verified();
  for (const Finding& finding : report.findings) {
    EXPECT_TRUE(finding.what == Damaged::kPage || finding.what == Damaged::kOlderPage) << finding.text;
  }
  EXPECT_EQ(report.checkpoints[0].damages, made_.leaves - made_.readable.size());
}

TEST_F(SparseStoreTest, TheCleanerFreesDeadSegments) {
  SparseStoreOptions options = Small();
  options.all_leaves = true;
  options.dead_every = 1;
  Make(options);
  Open();
  const Status cleaned = store_->Clean();
  ASSERT_TRUE(cleaned.ok()) << cleaned.ToString();
  EXPECT_GT(Counter("segments_cleaned"), 0u);
  Checkpoint();
  Checkpoint();
  EXPECT_LT(Counter("storage_bytes"), made_.bytes / 4 * 3);
  ExpectReadable();
  store_.reset();
  const VerifyReport report = Verified();
  EXPECT_TRUE(report.clean()) << ReportText(report);
  EXPECT_EQ(report.checkpoints[0].tables[0].records, made_.records);
}

TEST_F(SparseStoreTest, TheCleanerLeavesHolesAlone) {
  SparseStoreOptions options = Small();
  options.dead_every = 16;
  Make(options);
  Open();
  const Status cleaned = store_->Clean();
  ASSERT_TRUE(cleaned.ok()) << cleaned.ToString();
  EXPECT_EQ(Counter("cleaned_bytes_read"), 0u) << "too little is dead";
}

TEST(SparseTreeTest, PagesAreFilledAsByAnOrderedLoad) {
  const BwTreeOptions options;
  const SparseTree tree(SparseFill(options), /*leaves=*/1000);
  const Owned<BasePage> leaf = tree.Build(/*level=*/0, /*page=*/500), inner = tree.Build(/*level=*/1, /*page=*/1);
  const double leaf_bytes = options.leaf_page_bytes, inner_bytes = options.inner_page_bytes;
  EXPECT_NEAR(static_cast<double>(leaf->bytes()), leaf_bytes * 7 / 8, leaf_bytes / 50);
  EXPECT_NEAR(static_cast<double>(inner->bytes()), inner_bytes * 7 / 8, inner_bytes / 50);
}

TEST(SparseTreeTest, IdsAreDistinctAndWithoutGaps) {
  BwTreeOptions options;
  options.leaf_page_bytes = options.inner_page_bytes = 400;
  for (const uint64_t leaves : {2, 3, 100, 101}) {
    const SparseTree tree(SparseFill(options), leaves);
    std::vector<uint32_t> ids;
    for (uint64_t leaf = 0; leaf < leaves; ++leaf) {
      ids.push_back(tree.IdOf(0, leaf).value);
      for (uint8_t level = 1; level <= tree.root_level() && tree.EndsPage(level, leaf); ++level) {
        ids.push_back(tree.IdOf(level, tree.PageOver(level, leaf)).value);
      }
    }
    EXPECT_EQ(ids.size(), leaves + tree.inner_pages());
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end() - 1)) << "the root is the last page, and has the first id";
    std::ranges::sort(ids);
    for (uint32_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], i + 1);
    EXPECT_EQ(tree.next_page().value, ids.size() + 1);
  }
}

}  // namespace
}  // namespace deut::dc::bench
