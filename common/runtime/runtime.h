// Runtime: where threads, time, randomness and every wait come from. Production code gets RealRuntime(); a deterministic
// simulation can put another in its place, because nothing else in the project starts threads, reads clocks or blocks.
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
  // Microseconds since 1970 of the wall clock; for people only, never for correctness.
  virtual int64_t WallMicros() = 0;
  // A fresh seed for a generator (random.h).
  virtual uint64_t RandomSeed() = 0;

  // `name` is at most 15 bytes (what the kernel shows).
  virtual std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) = 0;

  // The one primitive under every wait: blocks while `word` equals `expected`, until Wake on the same word or the
  // deadline. May return early for no reason: the caller looks again. Returns false only when the deadline has passed.
  // A thread that changes `word` and then calls Wake is never missed.
  virtual bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) = 0;
  virtual void Wake(const std::atomic<uint32_t>& word, int waiters) = 0;
  void WakeAll(const std::atomic<uint32_t>& word) { Wake(word, INT32_MAX); }

  // Lets other threads run; for bounded spinning only.
  virtual void Yield() = 0;
  // Blocks until `time`. Only for pacing (backoff, linger, periodic rounds), never in place of a condition.
  void SleepUntil(MonotonicTime time);
};

// The machine's own clock, threads and futexes. One object for the process, stateless.
Runtime& RealRuntime();

}  // namespace deut

#endif  // COMMON_RUNTIME_RUNTIME_H_
