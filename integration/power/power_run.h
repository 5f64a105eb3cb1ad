// PowerRun: the lives of one store on one FaultyDisk. Each life opens the store, has the oracle judge what is there, works, and ends with the loss of
// power: at a given changing operation of the disk, or after its work.
// Thread-safety: one thread.
#ifndef INTEGRATION_POWER_POWER_RUN_H_
#define INTEGRATION_POWER_POWER_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "integration/power/checkpointing_dc.h"
#include "integration/power/load.h"
#include "integration/power/oracle.h"
#include "integration/power/powered_store.h"

namespace deut::power {

struct RunOptions {
  uint64_t seed = 1;
  uint32_t threads = 1;
  bool keeps_pages = false;  // a DC whose pages never lose power (checkpointing_dc.h), else they are on the same disk
  StoreSizes sizes = {};
};

struct Life {
  uint64_t crash_after = 0;  // changing operations of the disk; 0 = after the work
  uint32_t steps = 0;
  // Something is wrong with the disk besides: the store may refuse to open, and its work may fail; what is there is judged all the same.
  bool faulty = false;
  std::function<void(FaultyDisk&)> before_open = {}, before_work = {};
  // Asked after the work: the store has failed by now, or is about to, and is given the time.
  std::function<bool(FaultyDisk&)> must_fail = {};
  // Asked when the steps are done: true, and as many follow.
  std::function<bool()> more = {};
  bool look = true;    // reads and judges first
  bool quiet = false;  // with little going on in the background
  bool clean = false;  // without a crash of its own it ends as when it is told to stop: all is written
  // The process ends, and the disk goes on: the next life reads what was written, durable or not.
  bool power_stays = false;
};

// What the DC has done in the background; of lives whose counters could still be asked for.
struct DcWork {
  uint64_t splits = 0, merges = 0, checkpoints = 0, cleaned = 0, loaded = 0;

  void Add(const DcWork& other) {
    splits += other.splits;
    merges += other.merges;
    checkpoints += other.checkpoints;
    cleaned += other.cleaned;
    loaded += other.loaded;
  }
};

class PowerRun {
 public:
  explicit PowerRun(const RunOptions& options);
  // Goes on with what another run has left, whose clients had got as far as `oracle` knows. The DC's pages are on that disk.
  PowerRun(const RunOptions& options, std::unique_ptr<FaultyDisk> disk, std::unique_ptr<Oracle> oracle);

  // Empty, or the first thing that is wrong.
  std::string Live(const Life& life);
  // The history's checkers on all lives. REQUIRES: the last life had no steps, and was read.
  std::string Finish() { return oracle_->Finish(); }

  FaultyDisk& disk() { return *disk_; }
  const Oracle& oracle() const { return *oracle_; }
  // Of the last life: whether it came as far as to be read; whether its disk crashed by itself; why its store failed.
  bool was_read() const { return was_read_; }
  bool crashed() const { return crashed_; }
  const Status& failure() const { return failure_; }
  uint64_t lives() const { return lives_; }
  uint64_t reads() const { return reads_; }
  bool trimmed() const { return trimmed_; }  // some of the log was let go
  const DcWork& dc_work() const { return dc_work_; }

 private:
  std::string Look(PoweredStore& store, const Life& life, uint64_t crashes);
  std::string Work(PoweredStore& store, const Life& life, uint64_t crashes);
  void NoteFirstLsn(PoweredStore& store);

  const RunOptions options_;
  const std::unique_ptr<FaultyDisk> disk_;
  KeptPages pages_;
  Random random_;
  const std::unique_ptr<Oracle> oracle_;
  bool was_read_ = false, crashed_ = false;
  Status failure_;
  uint64_t lives_ = 0, reads_ = 0, first_lsn_ = 0;
  bool trimmed_ = false;
  DcWork dc_work_;
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_POWER_RUN_H_
