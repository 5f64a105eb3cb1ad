// The costs of a checkpoint and of a start with millions of pages: a mapping table without trees, of which range(1) random
// pages change between two checkpoints. 32 million pages are about one terabyte. The folder is DEUT_BENCH_DIR, or a
// temporary one; it takes about 100 bytes for each page.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "common/testing/temp_dir.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/checkpoint/checkpoint_lineages.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {
namespace {

constexpr DcId kDc{1};
constexpr uint64_t kSegmentsOfStore = 20'000;
constexpr uint64_t kSegmentBytes = 64 << 20;

class ManyPages {
 public:
  explicit ManyPages(uint32_t pages)
      : storage_(std::move(*NewSystemStorage(IoKind::kAuto, RealRuntime()))),
        count_(pages),
        pages_(std::move(*MappingTable::Create(pages))) {
    const char* chosen = std::getenv("DEUT_BENCH_DIR");
    path_ = (chosen == nullptr ? directory_.path() : std::string(chosen)) + "/bench";
    DEUT_CHECK(storage_->CreateDirectory(path_).ok());
    for (uint32_t page = 1; page <= pages; ++page) pages_->Restore(PageId(page), ImageParts(RandomAddress()));
    lineages_ =
        std::make_unique<CheckpointLineages>(*pages_, domain_, RecoveredLineages(), CheckpointLineagesOptions());
    set_ = std::move(*CheckpointSet::Open(*storage_, path_, kDc, CheckpointNumber(0)));
  }
  ~ManyPages() {
    const auto names = storage_->List(path_);
    for (const std::string& name : *names) DEUT_CHECK(storage_->Remove(path_ + "/" + name).ok());
  }

  void Change(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const PageId page(1 + static_cast<uint32_t>(random_.Below(count_)));
      const ReclamationDomain::Guard guard(domain_);
      DEUT_CHECK(pages_->ClaimImage(page) && pages_->SetImage(page, ImageParts(RandomAddress()), domain_));
      pages_->ReleaseImage(page);
    }
  }
  // Returns the bytes of the file. `in_gate`: seconds of the part for which no page is split.
  uint64_t Take(double* in_gate) {
    lineages_->Begin(/*complete=*/false);
    const MonotonicTime closed = RealRuntime().Now();
    lineages_->End();
    *in_gate = std::chrono::duration<double>(RealRuntime().Now() - closed).count();
    CheckpointHead head{.number = set_->next(), .dc = kDc, .incarnation = DcIncarnation(1)};
    head.next_segment = kSegmentsOfStore + 1;
    lineages_->FillHead(&head);
    auto writer = std::move(*CheckpointWriter::Create(*storage_, path_, head));
    for (uint64_t number = 1; number <= kSegmentsOfStore; ++number) {
      DEUT_CHECK(
          writer->AddSegment({.number = number, .kind = SegmentKind::kBase, .written_bytes = kSegmentBytes}).ok());
    }
    DEUT_CHECK(lineages_->AddPages(writer.get()).ok());
    CheckpointAncestor file;
    DEUT_CHECK(set_->Complete(std::move(writer), &file).ok());
    lineages_->Completed(file);
    return uint64_t{file.blocks} << 16;
  }
  uint64_t Read(int threads) {
    class Restoring final : public CheckpointVisitor {
     public:
      explicit Restoring(uint32_t pages) : table_(std::move(*MappingTable::Create(pages))) {}
      Status OnHead(const CheckpointHead&) override { return Status::Ok(); }
      Status OnTable(const CheckpointTable&) override { return Status::Ok(); }
      Status OnSegment(const SegmentExtent&) override { return Status::Ok(); }
      Status OnPage(PageId page, std::span<const PageAddress> newest_first) override {
        table_->Restore(page, ImageParts(newest_first[0]));
        return Status::Ok();
      }

     private:
      const std::unique_ptr<MappingTable> table_;
    };
    Restoring visitor(count_);
    const auto counts = ReadCheckpoint(*storage_, path_, set_->newest(), kDc, &visitor,
                                       {.runtime = &RealRuntime(), .threads = threads});
    DEUT_CHECK(counts.ok() && counts->pages == count_);
    return counts->pages;
  }
  uint64_t BytesOfFiles() {
    uint64_t bytes = 0;
    const Result<std::vector<std::string>> names = storage_->List(path_);
    DEUT_CHECK(names.ok());
    for (const std::string& name : *names) bytes += *(*storage_->Open(path_ + "/" + name, {}))->Size();
    return bytes;
  }

 private:
  PageAddress RandomAddress() {
    return PageAddress::Make(1 + random_.Below(kSegmentsOfStore), kSegmentHeaderBytes + random_.Below(500'000) * 128,
                             16'000);
  }

  const testing::TempDir directory_;
  std::unique_ptr<Storage> storage_;
  std::string path_;
  Random random_{1};
  const uint32_t count_;
  const std::unique_ptr<MappingTable> pages_;
  ReclamationDomain domain_;
  std::unique_ptr<CheckpointLineages> lineages_;
  std::unique_ptr<CheckpointSet> set_;
};

// Counters: mebibytes of a complete file, and of each later one; milliseconds in the gate.
void BM_Checkpoint(benchmark::State& state) {
  ManyPages bench(static_cast<uint32_t>(state.range(0)));
  constexpr double kMiB = 1 << 20;
  double in_gate = 0, longest = 0;
  state.counters["complete_MiB"] = static_cast<double>(bench.Take(&in_gate)) / kMiB;
  (void)bench.Take(&in_gate);
  double bytes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    bench.Change(static_cast<uint64_t>(state.range(1)));
    state.ResumeTiming();
    bytes += static_cast<double>(bench.Take(&in_gate));
    longest = std::max(longest, in_gate);
  }
  state.counters["file_MiB"] = bytes / kMiB / static_cast<double>(state.iterations());
  state.counters["gate_ms"] = longest * 1000;
  state.counters["all_files_MiB"] = static_cast<double>(bench.BytesOfFiles()) / kMiB;
}
BENCHMARK(BM_Checkpoint)
    ->Args({4'000'000, 10'000})
    ->Args({32'000'000, 10'000})
    ->Args({32'000'000, 640'000})
    ->Iterations(20)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Reads a checkpoint whose lineage has gone through 40 checkpoints, with 16 threads.
void BM_Start(benchmark::State& state) {
  ManyPages bench(static_cast<uint32_t>(state.range(0)));
  double in_gate = 0;
  for (int i = 0; i < 80; ++i) {
    bench.Change(static_cast<uint64_t>(state.range(1)));
    (void)bench.Take(&in_gate);
  }
  uint64_t pages = 0;
  for (auto _ : state) pages += bench.Read(/*threads=*/16);
  state.SetItemsProcessed(static_cast<int64_t>(pages));
}
BENCHMARK(BM_Start)
    ->Args({4'000'000, 100'000})
    ->Args({32'000'000, 100'000})
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace deut::dc
