// PowerRun: the lives of one store on one FaultyDisk. A life is the time from an opening of the store to the next
// loss of power. In each life the store is opened, the oracle judges its content, clients work, and power is lost.
// That happens at a given changing operation of the disk, or after the work.
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
  bool keeps_pages =
      false;  // true: the DC's pages never lose power (checkpointing_dc.h); false: they are on the same disk
  StoreSizes sizes = {};
};

struct Life {
  uint64_t crash_after = 0;  // power is lost at this changing operation of the disk; 0 = after the work
  uint32_t steps = 0;
  // The disk has faults, too. The store may refuse to open and its work may fail, but its content is judged all the
  // same.
  bool faulty = false;
  std::function<void(FaultyDisk&)> before_open = {}, before_work = {};
  // Called after the work. True: the store has failed or is about to fail, and the run waits for the failure.
  std::function<bool(FaultyDisk&)> expect_failure = {};
  // Called when the steps are done. True: the clients do the same number of steps again.
  std::function<bool()> continue_steps = {};
  bool judge_first = true;         // reads and judges the content first
  bool little_background = false;  // with little background work
  bool orderly_stop = false;       // unless the disk crashes, it ends with an orderly stop: everything is written
  // The process ends, but the disk keeps its power: the next life reads everything written, durable or not.
  bool keeps_power = false;
};

// Background work of the DC, summed over the lives whose counters could still be read.
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
  // Continues on the disk that another run left; `oracle` knows what that run's clients did until then. The DC's
  // pages are on that disk, too.
  PowerRun(const RunOptions& options, std::unique_ptr<FaultyDisk> disk, std::unique_ptr<Oracle> oracle);

  // Returns "", or the first error.
  std::string RunLife(const Life& life);
  // Runs the history's checkers on all lives. REQUIRES: the last life had no steps, and its content was read.
  std::string Finish() { return oracle_->Finish(); }

  FaultyDisk& disk() { return *disk_; }
  const Oracle& oracle() const { return *oracle_; }
  // About the last life: whether its content was read; whether its disk crashed at crash_after; why its store failed.
  bool was_read() const { return was_read_; }
  bool crashed() const { return crashed_; }
  const Status& failure() const { return failure_; }
  uint64_t lives() const { return lives_; }
  uint64_t reads() const { return reads_; }
  bool trimmed() const { return trimmed_; }  // the TC removed a part of its log
  const DcWork& dc_work() const { return dc_work_; }

 private:
  std::string ReadAndJudge(PoweredStore& store, const Life& life, uint64_t crashes);
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
