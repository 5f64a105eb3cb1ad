// Runs a page store with checkpoints through several lives on one faulty disk. A life is the time from one start to
// the next loss of power; the next life begins with the remaining files. A life writes, deletes and cleans pages and takes
// checkpoints, as the tree above the store does. After each loss of power:
//   - the newest checkpoint is not older than the last completed one, it is whole, and it has the images that were
//     captured for it;
//   - every part it names reads back exactly, and so does the generation before it;
//   - live bytes are those of the parts it names.
// In the end the disk holds only the files that the two generations name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_fixture.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

using Failure = std::optional<std::string>;

// A part and its content.
struct Part {
  PageAddress address;
  uint64_t salt = 0;
  size_t bytes = 0;
};
// A part that is being written.
struct New {
  PageId page;
  Part part;
  bool base = true;
};
// The parts of each page, the newest first.
using Images = std::map<PageId, std::vector<Part>>;

struct Tally {
  uint64_t lives = 0, judged = 0, older_judged = 0, checkpoints = 0, removed = 0, cleaned = 0, disk_full = 0,
           disk_failed = 0;

  Tally& operator+=(const Tally& other) {
    lives += other.lives;
    judged += other.judged;
    older_judged += other.older_judged;
    checkpoints += other.checkpoints;
    removed += other.removed;
    cleaned += other.cleaned;
    disk_full += other.disk_full;
    disk_failed += other.disk_failed;
    return *this;
  }
};

class StoreRun {
 public:
  explicit StoreRun(uint64_t seed) : disk_(RealRuntime(), seed), random_(seed) {
    options_ = {
        .segment_bytes = 16 << 10, .append_buffer_bytes = 8 << 10, .max_open_files = 3, .max_unsynced_segments = 2};
    // Half of the runs have segments of different lengths.
    if (seed % 2 == 0) options_.segments_before_growth = 4;
  }

  FaultyDisk& disk() { return disk_; }
  const Tally& tally() const { return tally_; }

  // A life with a disk that fails at times. It ends at the first error, half of the time without a loss of power, so
  // that the next life builds on state that is not durable. It must notice wrong bytes.
  Failure LiveWithFault(const DiskFault& fault, int steps) {
    ++tally_.lives;
    storage_ = disk_.Mount();
    const int id = disk_.AddFault(fault);
    Failure wrong = OpenAndJudge();
    // An error is allowed; a wrong answer never is.
    const auto says = [&](const char* code) { return wrong->find(code) != std::string::npos; };
    if (wrong && disk_.hits(id) > 0 && (says("CORRUPTION: ") || says("IO_ERROR: "))) wrong = std::nullopt;
    if (!wrong && set_ != nullptr) {
      const Status worked = Work(steps);
      if (!worked.ok() && disk_.hits(id) == 0) wrong = Concat("the work: ", worked.ToString());
      tally_.disk_failed += !worked.ok();
    }
    disk_.RemoveFault(id);
    End();
    if (random_.OneIn(2)) disk_.Crash(random_.Next());
    return wrong;
  }

  // One life: opens, verifies, works, ends. `changes_until_crash` 0: it ends after its work. Returns the first thing
  // that is wrong, or nothing.
  Failure Live(uint64_t changes_until_crash, int steps) {
    ++tally_.lives;
    storage_ = disk_.Mount();
    const uint64_t crashes = disk_.crashes();
    disk_.CrashAfter(changes_until_crash);
    Failure wrong = OpenAndJudge();
    const auto crashed = [&] { return disk_.crashes() != crashes; };
    if (crashed()) {
      wrong = std::nullopt;  // the crash caused it
    } else if (!wrong) {
      ++tally_.judged;
      const Status worked = Work(steps);
      if (!worked.ok() && !crashed()) wrong = Concat("the work: ", worked.ToString());
    }
    End();
    disk_.CrashAfter(0);
    if (!crashed()) disk_.Crash(random_.Next());
    return wrong;
  }

  // A life without faults: after two more checkpoints no file is left that no kept checkpoint names.
  Failure TidyUp() {
    storage_ = disk_.Mount();
    if (Failure wrong = OpenAndJudge()) return wrong;
    base_.reset();
    delta_.reset();
    std::set<std::string> named;
    for (int i = 0; i < 3; ++i) {
      if (const Status status = Checkpoint(); !status.ok()) return status.ToString();
    }
    for (const CheckpointNumber number : {set_->newest(), set_->oldest_kept()}) {
      named.insert(CheckpointName(number));
      for (const SegmentExtent& extent : extents_[number]) named.insert(SegmentName(extent.kind, extent.number));
    }
    const auto names = storage_->List(kTestPages);
    if (!names.ok()) return names.status().ToString();
    for (const std::string& name : *names) {
      if (!named.contains(name)) return Concat(name, " was left over");
    }
    if (names->size() != named.size()) return Concat(named.size(), " files are named, ", names->size(), " are there");
    return std::nullopt;
  }

 private:
  void End() {
    base_.reset();
    delta_.reset();
    store_.reset();
    set_.reset();
  }

  Failure OpenAndJudge() {
    const auto found = FindCheckpoints(*storage_, kTestPages);
    if (!found.ok() && found.status() != ErrorCode::kNotFound) return found.status().ToString();
    CheckpointNumber opened;
    if (found.ok() && !found->empty()) {
      opened = found->front();
      if (Failure wrong = JudgeOlder(*found)) return wrong;
      if (Failure wrong = OpenCheckpoint(opened, &store_)) return Concat("checkpoint ", opened.value, ": ", *wrong);
      images_ = snapshots_[opened];
    } else {
      auto created = SegmentStore::Create(*storage_, RealRuntime(), kTestPages, kTestDc, options_);
      if (!created.ok()) return created.status().ToString();
      store_ = std::move(*created);
      images_.clear();
    }
    if (opened < completed_) {
      return Concat("checkpoint ", completed_.value, " was completed, ", opened.value, " is there");
    }
    completed_ = opened;  // it is durable from now on
    auto set = CheckpointSet::Open(*storage_, kTestPages, kTestDc, opened);
    if (!set.ok()) return set.status().ToString();
    set_ = std::move(*set);
    auto base = store_->NewAppender(SegmentKind::kBase), delta = store_->NewAppender(SegmentKind::kDelta);
    if (!base.ok() || !delta.ok()) return "no appenders";
    base_ = std::move(*base);
    delta_ = std::move(*delta);
    return std::nullopt;
  }

  // Verifies the generation before the newest, as if the newest were damaged.
  Failure JudgeOlder(const std::vector<CheckpointNumber>& found) {
    if (found.size() < 2 || found[0] != completed_ || kept_before_ != found[1]) return std::nullopt;
    std::unique_ptr<SegmentStore> store;
    if (Failure wrong = OpenCheckpoint(found[1], &store)) return Concat("the older checkpoint: ", *wrong);
    ++tally_.older_judged;
    return std::nullopt;
  }

  Failure OpenCheckpoint(CheckpointNumber number, std::unique_ptr<SegmentStore>* store) {
    CheckpointKeeper keeper;
    const auto counts = ReadCheckpoint(*storage_, kTestPages, number, kTestDc, &keeper);
    if (!counts.ok()) return counts.status().ToString();
    if (!snapshots_.contains(number)) return "was never begun";
    const CheckpointContent& content = keeper.content;
    auto opened = SegmentStore::Open(*storage_, RealRuntime(), kTestPages, kTestDc, options_, number, content.segments,
                                     content.head.next_segment);
    if (!opened.ok()) return opened.status().ToString();
    *store = std::move(*opened);
    const Images& images = snapshots_[number];
    if (content.pages.size() != images.size()) return Concat(content.pages.size(), " pages, not ", images.size());
    for (const auto& [segment, bytes] : keeper.live_bytes) {
      if (const Status status = (*store)->AddLive(segment, bytes); !status.ok()) return status.ToString();
    }
    uint64_t live = 0;
    for (const auto& [page, addresses] : content.pages) {
      const auto image = images.find(page);
      if (image == images.end() || image->second.size() != addresses.size()) return Concat("page ", page.value);
      for (size_t i = 0; i < addresses.size(); ++i) {
        live += addresses[i].length_bound();
        if (addresses[i] != image->second[i].address) return Concat("page ", page.value, " has another part ", i);
        if (Failure wrong = ReadsBack(**store, page, image->second[i])) return wrong;
      }
    }
    if ((*store)->totals().live_bytes != live) return "wrong live bytes";
    return std::nullopt;
  }

  Failure ReadsBack(SegmentStore& store, PageId page, const Part& part) {
    if (const Status status = store.Read(part.address, page, &buffer_); !status.ok()) return status.ToString();
    if (buffer_.part().payload != PayloadOf(page, part.salt, part.bytes))
      return Concat("page ", page.value, " holds something else");
    return std::nullopt;
  }

  Status Work(int steps) {
    for (int step = 0; step < steps; ++step) {
      const uint64_t what = random_.Below(20);
      Status status;
      if (what < 15) {
        status = WriteSome();
      } else if (what < 16) {
        DeleteOne();
      } else if (what < 18) {
        status = CleanOne();
      } else {
        status = Checkpoint();
      }
      // No space: nothing has happened. Every other error ends the life.
      if (status == ErrorCode::kResourceExhausted) {
        ++tally_.disk_full;
        continue;
      }
      DEUT_RETURN_IF_ERROR(status);
    }
    return Status::Ok();
  }

  Status WriteSome() {
    std::vector<New> written;
    const int count = 1 + static_cast<int>(random_.Below(6));
    std::set<PageId> pages;
    for (int i = 0; i < count; ++i) {
      const PageId page(1 + static_cast<uint32_t>(random_.Below(30)));
      if (!pages.insert(page).second) continue;
      const auto image = images_.find(page);
      const bool delta = image != images_.end() && image->second.size() < kMaxPartsOfImage && random_.OneIn(2);
      Part part{
          .address = {}, .salt = ++salt_, .bytes = random_.OneIn(30) ? 20'000 : random_.Below(delta ? 300 : 3000)};
      const PageAddress previous = delta ? image->second.front().address : PageAddress();
      DEUT_RETURN_IF_ERROR(Append(page, part, previous, &written));
    }
    DEUT_RETURN_IF_ERROR(WriteBoth(written));
    for (const New& each : written) Install(each.page, each.part, each.base);
    return Status::Ok();
  }

  // Appends a base part if `previous` is none, else a delta part.
  Status Append(PageId page, Part part, PageAddress previous, std::vector<New>* written) {
    const bool base = previous.is_none();
    const auto address = base ? base_->Append(BaseHeader(page), PayloadOf(page, part.salt, part.bytes))
                              : delta_->Append(DeltaHeader(page, previous), PayloadOf(page, part.salt, part.bytes));
    if (!address.ok()) {
      // The batch of this kind is void; that of the other kind is not.
      std::erase_if(*written, [&](const New& each) { return each.base == base; });
      if (WriteBoth(*written).ok()) {
        for (const New& each : *written) store_->MarkDead(each.part.address);
      }
      return address.status();
    }
    part.address = *address;
    written->push_back({page, part, base});
    return Status::Ok();
  }

  // One batch may be written and the other void; then the parts of the written one die at once.
  Status WriteBoth(const std::vector<New>& written) {
    const Status base = base_->Write(), delta = delta_->Write();
    if (base.ok() && delta.ok()) return Status::Ok();
    if (base.ok() != delta.ok()) {
      for (const New& each : written) {
        if (each.base == base.ok()) store_->MarkDead(each.part.address);
      }
    }
    return base.ok() ? delta : base;
  }

  void Install(PageId page, const Part& part, bool base) {
    std::vector<Part>& image = images_[page];
    if (base) {
      const std::vector<Part> dead = std::exchange(image, {part});
      for (const Part& old : dead) store_->MarkDead(old.address);
    } else {
      image.insert(image.begin(), part);
    }
  }

  void DeleteOne() {
    if (images_.empty()) return;
    const auto victim = std::next(images_.begin(), static_cast<ptrdiff_t>(random_.Below(images_.size())));
    const std::vector<Part> dead = victim->second;
    images_.erase(victim);
    for (const Part& old : dead) store_->MarkDead(old.address);
  }

  // Cleans the closed segment with the fewest live bytes: writes its live pages anew, each as one base part.
  Status CleanOne() {
    std::optional<SegmentUsage> least;
    for (const SegmentUsage& usage : store_->usage()) {
      if (!usage.closed || usage.live_bytes == 0) continue;
      if (!least || usage.live_bytes < least->live_bytes) least = usage;
    }
    if (!least) return Status::Ok();
    std::set<PageId> pages;
    DEUT_RETURN_IF_ERROR(store_->ForEachPart(least->number, [&](const PartView& part) {
      const auto image = images_.find(part.header.page);
      if (image == images_.end()) return Status::Ok();
      const bool live = std::ranges::any_of(image->second, [&](const Part& p) { return p.address == part.address; });
      if (live) pages.insert(part.header.page);
      return Status::Ok();
    }));
    std::vector<New> written;
    for (const PageId page : pages) {
      const Part part{.address = {}, .salt = ++salt_, .bytes = random_.Below(3000)};
      DEUT_RETURN_IF_ERROR(Append(page, part, PageAddress(), &written));
    }
    DEUT_RETURN_IF_ERROR(WriteBoth(written));
    for (const New& each : written) Install(each.page, each.part, true);
    ++tally_.cleaned;
    for (const SegmentUsage& usage : store_->usage()) {
      if (usage.number == least->number && usage.live_bytes != 0)
        return DEUT_ERROR(kInternal, "still live after cleaning");
    }
    return Status::Ok();
  }

  Status Checkpoint() {
    const CheckpointNumber number = set_->next();
    store_->BeginCheckpoint(number);
    snapshots_[number] = images_;
    // Parts that are written after the images were captured may be in the files as well.
    if (base_ != nullptr && random_.OneIn(2)) {
      if (const Status more = WriteSome(); !more.ok() && more != ErrorCode::kResourceExhausted) return more;
    }
    DEUT_ASSIGN_OR_RETURN(const std::vector<SegmentExtent> extents, store_->SyncAll(number));
    extents_[number] = extents;
    const CheckpointHead head{.number = number,
                              .dc = kTestDc,
                              .incarnation = DcIncarnation(1),
                              .position = {},
                              .next_page = PageId(100),
                              .next_segment = store_->next_segment()};
    DEUT_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(*storage_, kTestPages, head));
    for (const SegmentExtent& extent : extents) DEUT_RETURN_IF_ERROR(writer->AddSegment(extent));
    for (const auto& [page, parts] : snapshots_[number]) {
      std::vector<PageAddress> addresses;
      for (const Part& part : parts) addresses.push_back(part.address);
      DEUT_RETURN_IF_ERROR(writer->AddPage(page, addresses));
    }
    DEUT_RETURN_IF_ERROR(set_->Complete(std::move(writer)));
    kept_before_ = completed_;
    completed_ = number;
    ++tally_.checkpoints;
    DEUT_ASSIGN_OR_RETURN(const size_t removed, store_->RemoveDeadSegments(set_->oldest_kept()));
    tally_.removed += removed;
    return Status::Ok();
  }

  FaultyDisk disk_;
  Random random_;
  SegmentStoreOptions options_;
  Tally tally_;
  uint64_t salt_ = 0;

  // Kept over all lives.
  std::map<CheckpointNumber, Images> snapshots_;
  std::map<CheckpointNumber, std::vector<SegmentExtent>> extents_;
  CheckpointNumber completed_;
  CheckpointNumber kept_before_;

  // State of the present life.
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<SegmentStore> store_;
  std::unique_ptr<CheckpointSet> set_;
  std::unique_ptr<SegmentAppender> base_, delta_;
  Images images_;
  PartBuffer buffer_;
};

uint64_t Environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

constexpr int kSteps = 60;

// Returns the first thing that goes wrong when lives end at every `step`th of their operations, and the next lives
// soon after. Adds the work of all lives to `sum`.
Failure CrashEverywhere(uint64_t seed, uint64_t step, void (*prepare)(FaultyDisk&), Tally* sum) {
  StoreRun whole(seed);
  if (Failure wrong = whole.Live(0, kSteps)) return wrong;
  const uint64_t operations = whole.disk().counts().changing;
  for (uint64_t crash_at = 1 + seed % step; crash_at <= operations; crash_at += step) {
    StoreRun run(seed);
    prepare(run.disk());
    Failure wrong = run.Live(crash_at, kSteps);
    if (!wrong) wrong = run.Live(1 + crash_at % 23, kSteps);  // during recovery, or soon after it
    if (!wrong) wrong = run.Live(0, kSteps);
    if (!wrong) wrong = run.TidyUp();
    if (wrong) return Concat("seed ", seed, ", crash at operation ", crash_at, ": ", *wrong);
    *sum += run.tally();
  }
  return std::nullopt;
}

TEST(PageStoreCrash, AtEveryOperationAndAgainInRecovery) {
  const uint64_t seeds = Environment("DEUT_STORE_SEEDS", 3), step = Environment("DEUT_STORE_STEP", 3);
  Tally sum;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    ASSERT_EQ(CrashEverywhere(seed, step, [](FaultyDisk&) {}, &sum), std::nullopt);
  }
  // Each run has three lives.
  EXPECT_GT(sum.judged, sum.lives / 2);
  EXPECT_GT(sum.older_judged, sum.lives / 20);
  EXPECT_GT(sum.checkpoints, sum.lives);
  EXPECT_GT(sum.cleaned, sum.lives);
  EXPECT_GT(sum.removed, sum.lives);
  std::cout << sum.lives << " lives, " << sum.judged << " judged, and the older generation " << sum.older_judged
            << " times; " << sum.checkpoints << " checkpoints, " << sum.cleaned << " segments cleaned, " << sum.removed
            << " removed\n";
}

TEST(PageStoreCrash, ManyLivesEndedAtRandom) {
  Tally sum;
  for (uint64_t seed = 1; seed <= Environment("DEUT_STORE_RUNS", 15); ++seed) {
    Random random(seed);
    StoreRun run(seed);
    for (int life = 0; life < 8; ++life) {
      // Now and then there is no space for a while.
      const int fault = random.OneIn(3) ? run.disk().AddFault({.action = DiskFault::Action::kNoSpace,
                                                               .kinds = kDiskWrite | kDiskName,
                                                               .path_contains = ".seg",
                                                               .skip = random.Below(60),
                                                               .count = 1 + random.Below(5)})
                                        : 0;
      const Failure wrong = run.Live(random.OneIn(3) ? 0 : 1 + random.Below(150), kSteps);
      if (fault != 0) run.disk().RemoveFault(fault);
      ASSERT_EQ(wrong, std::nullopt) << "seed " << seed << " life " << life;
    }
    const Failure wrong = run.TidyUp();
    ASSERT_EQ(wrong, std::nullopt) << "seed " << seed;
    sum += run.tally();
  }
  EXPECT_GT(sum.disk_full, 5u);
  EXPECT_GT(sum.removed, 50u);
  EXPECT_GT(sum.judged, 50u);
}

TEST(PageStoreCrash, DiskFaults) {
  uint64_t failed = 0;
  for (uint64_t seed = 1; seed <= Environment("DEUT_STORE_RUNS", 15) * 2; ++seed) {
    Random random(seed);
    StoreRun run(seed);
    for (int life = 0; life < 6; ++life) {
      DiskFault fault{.action = random.OneIn(2) ? DiskFault::Action::kIoError : DiskFault::Action::kShort,
                      .skip = random.Below(300),
                      .count = 1 + random.Below(3)};
      if (random.OneIn(3)) {
        fault.action = DiskFault::Action::kFlipBit;
        fault.kinds = kDiskRead;
      }
      Failure wrong = run.LiveWithFault(fault, kSteps);
      if (!wrong && random.OneIn(3)) wrong = run.Live(0, kSteps);
      ASSERT_EQ(wrong, std::nullopt) << "seed " << seed << " life " << life;
    }
    const Failure wrong = run.TidyUp();
    ASSERT_EQ(wrong, std::nullopt) << "seed " << seed;
    failed += run.tally().disk_failed;
  }
  EXPECT_GT(failed, 20u);
}

// Proves the test: with a disk that acknowledges syncs without doing them it finds the loss.
TEST(PageStoreCrash, ADiskThatIgnoresSyncsIsFoundOut) {
  Tally sum;
  EXPECT_NE(CrashEverywhere(1, 3, [](FaultyDisk& disk) { disk.SetIgnoreSync(true); }, &sum), std::nullopt);
}

}  // namespace
}  // namespace deut::dc
