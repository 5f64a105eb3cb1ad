// Runtime: the source of threads, time, randomness and every wait. Production code gets RealRuntime(). A
// deterministic simulation can use another one, because nothing else in the project starts threads, reads clocks or
// blocks.
// (Blocking inside gRPC's own calls and the kernel's disk calls is behind their interfaces: protocol/ and common/io.)
// Thread-safety: all methods from any thread. Ownership: the caller owns returned threads; a Runtime outlives them.
#ifndef COMMON_RUNTIME_RUNTIME_H_
#define COMMON_RUNTIME_RUNTIME_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/runtime/time.h"

namespace deut {

// A running thread. The destructor joins.
class Thread {
 public:
  virtual ~Thread() = default;
  virtual void Join() = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual MonotonicTime Now() = 0;
  // Microseconds of the wall clock since 1970; for people only, never for correctness.
  virtual int64_t WallMicros() = 0;
  // A fresh seed for a generator (random.h).
  virtual uint64_t RandomSeed() = 0;

  // `name` has at most 15 bytes (the part that the kernel shows).
  virtual std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) = 0;

  // The one primitive under every wait: blocks while `word` equals `expected`, until Wake on the same word or the
  // deadline. It may return early for no reason, so the caller tests again. Returns false only when the deadline has
  // passed.
  // Wait never misses a thread that changes `word` and then calls Wake.
  virtual bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) = 0;
  virtual void Wake(const std::atomic<uint32_t>& word, int waiters) = 0;
  void WakeAll(const std::atomic<uint32_t>& word) { Wake(word, INT32_MAX); }

  // Lets other threads run; for bounded spinning only.
  virtual void Yield() = 0;
  // Blocks until `time`. Only for pacing (backoff, linger, periodic rounds), never in place of a condition.
  void SleepUntil(MonotonicTime time);
};

// The machine's own clock, threads and futexes. The process has one such object; it is stateless.
Runtime& RealRuntime();

}  // namespace deut

#endif  // COMMON_RUNTIME_RUNTIME_H_
