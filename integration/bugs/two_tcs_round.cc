#include "integration/bugs/two_tcs_round.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "integration/bugs/chaos.h"
#include "integration/bugs/link.h"
#include "integration/bugs/store.h"
#include "integration/bugs/workers.h"
#include "integration/history/recorder.h"
#include "integration/history/workloads.h"
#include "integration/power/checkpointing_dc.h"

namespace deut::bugs {
namespace {

constexpr Duration kCatchUp = seconds(1);
constexpr Duration kGhostPatience = milliseconds(200);
constexpr uint32_t kGhosts = 2;

// A TC with its disk and its link to the DC.
struct Site {
  std::unique_ptr<FaultyDisk> disk;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Link> link;
  std::unique_ptr<Store> store;
};

// A TC that has been replaced and does not know it.
struct Old {
  ~Old() {
    if (site.link) site.link->Release();
  }
  Site site;
  std::unique_ptr<history::Workload> workload;
  std::vector<std::unique_ptr<history::RecordedClient>> ghosts;
  std::unique_ptr<Workers> workers;
};

class TwoTcsRound {
 public:
  TwoTcsRound(const RoundOptions& options, Watchdog& watchdog)
      : options_(options),
        watchdog_(watchdog),
        random_(options.seed),
        environment_(DrawEnvironment(options.layer, random_)),
        dc_disk_(RealRuntime(), random_.Next()),
        dc_storage_(dc_disk_.Mount()),
        pages_(std::make_unique<power::KeptPages>(RealRuntime())) {}

  RoundResult Run() {
    Live();
    if (recorder_) result_.history = recorder_->Take();
    old_.clear();
    now_.store.reset();
    return std::move(result_);
  }

 private:
  bool found() const { return !result_.verdict.empty(); }
  bool Found(std::string verdict, std::string details) {
    if (found()) return false;
    result_.verdict = std::move(verdict);
    result_.details = std::move(details);
    return false;
  }

  void Live() {
    std::optional<Chaos> chaos;
    if (!history::MeasuresProgress(options_.workload)) chaos.emplace(environment_.chaos_seed);
    if (!Begin()) return;
    for (uint32_t life = 0; life < environment_.lives && !found(); ++life) {
      const bool takes_over = random_.OneIn(2), last = life + 1 == environment_.lives;
      std::unique_ptr<FaultyDisk> old_log = now_.disk->CopyAfterCrash(random_.Next());
      const power::KeptPages::Backup old_pages = pages_->TakeBackup();
      Work(life, takes_over && !last);
      if (found() || last) break;
      if (takes_over) {
        TakeOver();
      } else {
        OpenWhatDoesNotBelongTogether(std::move(old_log), old_pages);
      }
    }
    if (found()) return;
    const Status read = workload_->ReadAll(*recorder_->NewClient(now_.store->client()));
    if (!read.ok()) Found("the last read", read.ToString());
  }

  bool Begin() {
    dc_ = std::make_unique<InProcessDataComponent>(RealRuntime(), [this] {
      return OpenDc(environment_, *dc_storage_, pages(), [](const Status& status) { FailStop(status.ToString()); });
    });
    if (!StartDc()) return false;
    const Status opened = Open(std::make_unique<FaultyDisk>(RealRuntime(), random_.Next()), &now_);
    if (!opened.ok()) return Found("does not open", opened.ToString());
    const Result<TableId> table = now_.store->CreateTable("t", environment_.patience);
    if (!table.ok()) return Found("no table", table.status().ToString());
    table_ = *table;
    workload_ = NewWorkload(environment_.patience);
    recorder_.emplace(now_.store->client());
    recorder_->SetPadding(environment_.padding);
    const Status loaded = workload_->Load(*recorder_->NewClient());
    return loaded.ok() || Found("load", loaded.ToString());
  }

  std::unique_ptr<history::Workload> NewWorkload(Duration patience) const {
    return history::NewWorkload(options_.workload, table_, environment_.durability, patience).value();
  }

  // If the TC does not open, `site` gets the disk but no store.
  Status Open(std::unique_ptr<FaultyDisk> disk, Site* site) {
    site->disk = std::move(disk);
    site->storage = site->disk->Mount();
    site->link = std::make_unique<Link>(*dc_);
    site->link->SetDelay(environment_.max_delay);
    Result<std::unique_ptr<Store>> opened =
        Store::Open(environment_, *site->storage, *site->link, [] { return false; });
    watchdog_.Moved();
    if (!opened.ok()) return opened.status();
    site->store = *std::move(opened);
    return Status();
  }

  void Work(uint32_t life, bool cut_off) {
    Runtime& runtime = RealRuntime();
    const Deadline end = runtime.Now() + environment_.life;
    std::vector<history::RecordedClient*> clients;
    for (uint32_t i = 0; i < environment_.threads; ++i) {
      clients.push_back(recorder_->NewClient(now_.store->client()));
    }
    Workers workers(*workload_, clients, options_.seed + uint64_t{life} * 100, environment_.steps_per_thread,
                    &watchdog_);
    bool over = false;
    while (workers.running()) {
      const bool ends = runtime.Now() >= end || !now_.store->failure().ok();
      // Clients in the middle of a call then do not get its result.
      if (ends && !over && cut_off) now_.store->CutOffClients();
      over = over || ends;
      if (over) workers.Stop();
      runtime.SleepUntil(runtime.Now() + microseconds(200) +
                         std::min<Duration>(environment_.harm_period, milliseconds(20)));
      if (!over) Harm();
    }
    const std::vector<Status> failures = workers.Join();
    if (cut_off) now_.store->CutOffClients();
    if (const Status failed = now_.store->failure(); !failed.ok()) Found("the store fails", failed.ToString());
    for (const Status& failure : failures) {
      if (failure.ok()) continue;
      Found(failure == ErrorCode::kCorruption ? "condition" : "error", failure.ToString());
    }
  }

  void Pause(uint64_t longest_micros) {
    Runtime& runtime = RealRuntime();
    runtime.SleepUntil(runtime.Now() + microseconds(random_.Below(longest_micros)));
  }

  void Harm() {
    for (const std::unique_ptr<Old>& old : old_) {
      if (random_.OneIn(8)) old->site.link->Release();
    }
    if (environment_.drop_caches && random_.OneIn(2)) (void)now_.store->DropCaches();
    if (environment_.restart_dc && random_.OneIn(environment_.restart_one_in)) {
      dc_->Kill();
      if (random_.OneIn(2)) pages_->LosePower(random_.Next());
      (void)StartDc();
    }
  }

  bool StartDc() {
    const Status started = dc_->Start();
    return started.ok() || Found("the DC does not start", started.ToString());
  }

  // REQUIRES: the clients of `site` are cut off.
  void Leave(Site site) {
    auto old = std::make_unique<Old>();
    old->site = std::move(site);
    old->site.link->SetDelay(environment_.max_delay_replaced_tc);
    old->workload = NewWorkload(kGhostPatience);
    for (uint32_t i = 0; i < kGhosts; ++i) {
      const uint32_t number = history::Recorder::kMaxClients - 1 - ghosts_++;
      old->ghosts.push_back(std::make_unique<history::RecordedClient>(old->site.store->neighbour(), number));
    }
    std::vector<history::RecordedClient*> clients;
    for (const auto& ghost : old->ghosts) clients.push_back(ghost.get());
    old->workers =
        std::make_unique<Workers>(*old->workload, clients, random_.Next(), environment_.steps_per_thread, nullptr);
    old_.push_back(std::move(old));
  }

  void TakeOver() {
    // Mostly restarts the DC first, so that the old TC is reconnecting to it when the new one starts.
    if (!random_.OneIn(3)) {
      dc_->Kill();
      if (!StartDc()) return;
      Pause(10000);
    }
    // Everything that the old TC has sent by now is in its log. Its later records reach neither the DC nor the copy
    // of the log.
    now_.link->Hold();
    std::unique_ptr<FaultyDisk> taken = now_.disk->CopyAfterCrash(random_.Next());
    std::unique_ptr<FaultyDisk> again = random_.OneIn(3) ? taken->CopyAfterCrash(random_.Next()) : nullptr;
    Leave(std::move(now_));
    now_ = Site();
    if (random_.OneIn(2)) Pause(20000);
    const Status opened = Open(std::move(taken), &now_);
    if (random_.OneIn(2)) old_.back()->site.link->Release();
    if (!opened.ok()) {
      Found("does not open", opened.ToString());
      return;
    }
    if (again == nullptr) return;
    // The DC must obey only one of two TCs that started from the same log.
    Site twin;
    if (Open(std::move(again), &twin).ok()) Leave(std::move(twin));
  }

  void OpenWhatDoesNotBelongTogether(std::unique_ptr<FaultyDisk> old_log, const power::KeptPages::Backup& old_pages) {
    // Makes the DC apply more than the old log holds, so that the DC can notice that this log has lost records.
    const bool ahead = AppliesMore();
    now_.store.reset();
    std::unique_ptr<FaultyDisk> log = std::move(now_.disk);
    now_ = Site();
    switch (random_.Below(3)) {
      case 0:
        if (ahead && TryOpen(std::move(old_log))) return;
        break;
      case 1:
        if (OpensOnNewDc(*log)) return;
        break;
      default:
        if (OpensOnOldPages(*log, old_pages)) return;
    }
    if (found()) return;
    // A refused TC may have reached the DC with the epoch of this attempt. The next attempt has a higher epoch, so it
    // is retried if it was fenced.
    Status opened;
    for (int tries = 0; tries < 3; ++tries) {
      opened = Open(std::move(log), &now_);
      if (opened.ok()) return;
      if (opened != ErrorCode::kFenced) break;
      log = std::move(now_.disk);
    }
    Found("does not open", opened.ToString());
  }

  // Writes once more. Returns true if the write committed and the DC has applied everything.
  bool AppliesMore() {
    const Status written = recorder_->NewClient(now_.store->client())->Run({}, [&](history::RecordedTransaction& t) {
      return t.Put(table_, "~ahead");
    });
    return written.ok() && now_.store->client().DropCaches({.timeout = kCatchUp}).ok();
  }

  bool TryOpen(std::unique_ptr<FaultyDisk> disk) {
    if (Open(std::move(disk), &now_).ok()) return true;
    now_ = Site();
    return false;
  }

  bool OpensOnNewDc(const FaultyDisk& log) {
    std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
    auto pages = std::make_unique<power::KeptPages>(RealRuntime());
    const auto exchange = [&] {
      dc_->Kill();
      std::swap(dc_storage_, storage);
      std::swap(pages_, pages);
      return StartDc();
    };
    if (!exchange()) return false;
    if (TryOpen(log.CopyAfterCrash(random_.Next()))) return true;
    exchange();
    return false;
  }

  bool OpensOnOldPages(const FaultyDisk& log, const power::KeptPages::Backup& old_pages) {
    const power::KeptPages::Backup newest = pages_->TakeBackup();
    const auto restore = [&](const power::KeptPages::Backup& backup) {
      dc_->Kill();
      pages_->Restore(backup);
      return StartDc();
    };
    if (!environment_.keeps_pages || !restore(old_pages)) return false;
    if (TryOpen(log.CopyAfterCrash(random_.Next()))) return true;
    restore(newest);
    return false;
  }

  power::KeptPages* pages() { return environment_.keeps_pages ? pages_.get() : nullptr; }

  const RoundOptions options_;
  Watchdog& watchdog_;
  Random random_;
  Environment environment_;
  FaultyDisk dc_disk_;
  std::unique_ptr<Storage> dc_storage_;
  std::unique_ptr<power::KeptPages> pages_;
  std::unique_ptr<InProcessDataComponent> dc_;
  Site now_;
  std::vector<std::unique_ptr<Old>> old_;
  TableId table_;
  std::unique_ptr<history::Workload> workload_;
  std::optional<history::Recorder> recorder_;
  uint32_t ghosts_ = 0;
  RoundResult result_;
};

}  // namespace

RoundResult RunTwoTcsRound(const RoundOptions& options, Watchdog& watchdog) {
  return TwoTcsRound(options, watchdog).Run();
}

}  // namespace deut::bugs
