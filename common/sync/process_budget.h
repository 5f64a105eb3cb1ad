// ProcessBudget: one memory budget for a process (--memory). It keeps resident memory at or below the budget and a
// twentieth more, while there are pages or cached records that can leave memory.
//
// The split. The parts take memory by need, and nothing is reserved for a part that does not use it.
//   part                  its limit, of the budget B                                       alone set by
//   fixed parts           none; they are measured: the resident bytes of no other line     -
//     of them the log     the greatest power of two up to B/64, from 16 MiB to 64 MiB      --log_buffer
//     scans ahead         B/16, at most 256 MiB                                            -
//     read-back cache     a sixteenth of the versions' cap, at most 64 MiB                 -
//     record table        16 bytes for 256 bytes of the versions' cap, where it is used    --record_buckets_log2
//   one large transaction B/4, at most 2 GiB; it is measured like a fixed part             --max_transaction_bytes
//   versions              between B/16 and their cap B/4, as far as memory is free         --version_budget
//   cached records        with pages: nothing while all pages fit, else up to a quarter    --read_cache
//                         of E and half of the heap's room, at most half of E, in steps
//                         of E/32; without pages: 14/15 of E
//   pages                 the rest of E                                                    --dc_memory
// E, the elastic bytes, is B without the fixed parts and without the versions: those that are there, or the bytes that
// are kept free for them, if that is more. So versions take their memory from the pages, and return it to them. The
// bytes that they may take at any moment are kept free, up to 16 MiB: writers hardly pin more between two measurements.
// A part that a flag sets alone keeps that limit; the others share the rest.
//
// Pages fit if they take less than half of E, and do not fit if they take three quarters of their limit, both without
// the room that slabs may have (32 MiB). Between these marks the last decision stands. Cached records come before pages
// when data is larger than memory, because a page of a single hot record holds many cold ones. Pages yield to them step
// by step, as records are cached.
// The heap's room lies between small objects, where others were freed (common/runtime/process_memory.h). It is resident,
// and pages cannot use it. A load leaves much of it: its versions go, some records among them stay, and so few pages of
// the heap become empty. So more records may be cached as long as there is room. Those that do not fit into it take at
// most half as many bytes from the pages.
//
// Measuring. A thread of this object compares resident memory with the budget every kInterval, and sets the limits.
// Three margins keep the bound between two measurements:
//   - The component of pages begins to evict before its limit (dc/page_cache/memory_budget.h).
//   - Versions may take half of the memory that is free when it is measured, or B/16, which is kept free for them if it
//     is at most 16 MiB. The rest of B/16 exceeds B/20 only if B is more than 1.25 GiB. Then writers would have to pin
//     80 MiB between two measurements.
//   - When the process exceeds the budget, the allocator's free memory is returned first.
// So with a small budget the parts can take B until the next measurement. The twentieth is for what nothing limits:
// free memory that the allocator keeps, and memory that is still in use while the evictor works.
// Memory that the allocator has kept for ten seconds is returned in any case, also that of threads that have nothing to
// do. It would be a fixed part.
// Limits of the bound. Fixed parts that exceed the budget by themselves are not bounded: pages and cached records then
// have what their floors allow. A budget compares itself with the memory of the whole process. So each of several
// budgets in one process is the amount that the process may take: for each of them, the others' parts are fixed parts.
// Thread-safety: all methods from any thread; a reporter runs on the measuring thread, under this object's mutex.
// Ownership: registrations end before the budget. The runtime outlives it. Errors: while the system does not tell
// resident memory, as when no descriptor is free, the fixed parts count as at the last measurement that it told. Check
// refuses an amount that cannot be meant.
#ifndef COMMON_SYNC_PROCESS_BUDGET_H_
#define COMMON_SYNC_PROCESS_BUDGET_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/runtime/process_memory.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

// The parts that tell the budget how many bytes they take.
enum class MemoryPart : uint8_t { kPages, kVersions, kCachedRecords };
inline constexpr size_t kMemoryParts = 3;

// The measured bytes. `parts` are those of the resident bytes that each part reports.
struct MemoryUse {
  uint64_t resident = 0;
  uint64_t heap_room = 0;
  std::array<uint64_t, kMemoryParts> parts{};
  bool has_pages = false;
  bool has_versions = false;
  uint64_t of(MemoryPart part) const { return parts[static_cast<size_t>(part)]; }
};

// The limits that follow from it.
struct MemorySplit {
  uint64_t pages = 0;
  uint64_t versions = 0;
  uint64_t cached_records = 0;
  bool pages_fit = true;
};
// `pages_fit`: the last decision, which stands between the two marks.
MemorySplit SplitMemory(uint64_t budget, const MemoryUse& use, bool pages_fit);

class ProcessBudget {
 public:
  static constexpr Duration kInterval = std::chrono::milliseconds(50);
  // The allocator is asked for its free memory at most once in this time, unless it had much the last time.
  static constexpr Duration kReturnInterval = std::chrono::seconds(1);
  // Memory that has been free for long is returned to the system at this interval, and the heap's room is measured.
  static constexpr Duration kDecayInterval = std::chrono::seconds(2);
  // A smaller amount is refused: it is a slip, as 8 for 8GiB, and would refuse nearly every transaction.
  static constexpr uint64_t kMinBytes = uint64_t{32} << 20;

  // The process's memory; tests pass other functions.
  struct Process {
    std::function<uint64_t()> resident_bytes = ResidentBytes;
    std::function<void()> return_freed = ReturnFreedMemory;
    std::function<void()> return_freed_long_ago = ReturnMemoryFreedLongAgo;
    std::function<uint64_t()> heap_room = [] { return FiguresOfHeap().room; };
  };

  // INVALID_ARGUMENT: the operator's budget is neither 0 nor at least kMinBytes.
  static Status Check(std::optional<uint64_t> wanted);
  // `wanted`: the budget that the operator gave; 0: there is none. Without it, it is half of the memory that the
  // process may use (memory_limit.h). Null: there is no budget.
  static std::unique_ptr<ProcessBudget> Open(Runtime& runtime, std::optional<uint64_t> wanted);

  ProcessBudget(Runtime& runtime, uint64_t bytes, Process process, std::string origin = {});
  ~ProcessBudget();
  ProcessBudget(const ProcessBudget&) = delete;
  ProcessBudget& operator=(const ProcessBudget&) = delete;

  // Starts the thread that measures. Without it the owner calls Measure.
  void Start();
  void Measure();

  uint64_t bytes() const { return bytes_; }
  // The budget and its origin, for the line that a program logs at its start.
  std::string Describe() const;
  uint64_t limit(MemoryPart part) const { return limits_[static_cast<size_t>(part)].load(std::memory_order_relaxed); }

  // The limits of the table that do not change while the process runs.
  uint64_t version_cap() const { return bytes_ / 4; }
  uint64_t transaction_bytes() const;
  uint64_t log_buffer_bytes() const;
  uint64_t scan_ahead_bytes() const;

  // How a part takes part. Several objects may report for one part; their bytes are added.
  struct Reporter {
    std::function<uint64_t()> bytes;
    std::function<void(uint64_t limit)> on_limit = nullptr;  // called at each measurement
  };
  // Ends the registration in its destructor. After that, no function of the reporter runs any more.
  class Registration {
   public:
    Registration(ProcessBudget& budget, MemoryPart part, Reporter reporter);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    friend class ProcessBudget;
    ProcessBudget& budget_;
    const MemoryPart part_;
    const Reporter reporter_;
    Registration* next_ = nullptr;
  };

 private:
  MemoryUse Use() DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  const uint64_t bytes_;
  const Process process_;
  const std::string origin_;
  Mutex mutex_;
  Registration* registered_ DEUT_GUARDED_BY(mutex_) = nullptr;
  bool pages_fit_ DEUT_GUARDED_BY(mutex_) = true;
  MonotonicTime next_return_ DEUT_GUARDED_BY(mutex_);
  MonotonicTime next_decay_ DEUT_GUARDED_BY(mutex_);
  uint64_t heap_room_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t fixed_ DEUT_GUARDED_BY(mutex_) = 0;  // resident bytes that no part reported, when they were last known
  std::array<std::atomic<uint64_t>, kMemoryParts> limits_{};
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // COMMON_SYNC_PROCESS_BUDGET_H_
