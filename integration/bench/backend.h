// Backend: a store under measurement: this project's, or a rival's. One file a store; each defines OpenBackend, so that a program holds one.
// Options of a rival, with the reason for each: options.md.
// Thread-safety: Backend by one thread; each of its sessions by one thread, all at the same time. Ownership: sessions end before their backend.
#ifndef INTEGRATION_BENCH_BACKEND_H_
#define INTEGRATION_BENCH_BACKEND_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "integration/bench/read_check.h"

namespace deut::bench {

enum class StepKind : uint8_t {
  kRead = 0,
  kUpdate,  // of a record that is there, without reading it where the store can do that
  kInsert,  // of one that is not
  kScan,
  kReadModifyWrite,  // the value is read by the client before the write is sent
};
constexpr int kStepKinds = 5;

// One operation of a transaction. Views live until Session::Run returns.
struct Step {
  StepKind kind = StepKind::kRead;
  std::string_view key = {};    // kScan: where it begins; a record that is there
  std::string_view value = {};  // of a write
  uint32_t limit = 0;           // kScan: records
};

struct BackendOptions {
  std::string directory;  // of this store alone; it is there and empty
  // What may be kept of data in memory, the same for every store that lets one say so.
  uint64_t cache_bytes = uint64_t{1} << 30;
  // Of those that a store has, by a name of its own ("plain", "optimistic"); empty = the first.
  std::string variant;
  // Where a server listens, which is there for this alone: what it holds is removed. Empty = in this process.
  std::string target;
  // This project's: the server may be reached without TLS wherever it is, as all others are.
  bool insecure = false;
  uint32_t most_threads = 128;
};

// What stands beside the numbers.
struct BackendFacts {
  std::string name;         // with the version
  std::string isolation;    // of transactions of several operations
  bool interactive = true;  // it has Session::RunInteractive
  std::string buffered;     // what a commit means when it is acknowledged, without ...
  std::string durable;      // ... and with durability asked for
};

// Which way a scan goes.
enum class Order : uint8_t { kAscending, kDescending };

// A transaction whose operations follow from what it has read. Calls see the writes before them. ABORTED ends the attempt, which is then run again;
// the body returns it, and any other error, at once. Views that are passed in are used during the call only.
class InteractiveTransaction {
 public:
  virtual ~InteractiveTransaction() = default;
  // Each record's value, or nothing; in one go where the store can.
  virtual Status Get(absl::Span<const std::string> keys, std::vector<std::optional<std::string>>* values) = 0;
  // At most `limit` records of [low, high).
  virtual Status Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
                      absl::FunctionRef<void(std::string_view key, std::string_view value)> record) = 0;
  // Whether the record is there or not. May be put off until something is read, or to the end.
  virtual Status Put(std::string_view key, std::string_view value) = 0;
  virtual Status Remove(std::string_view key) = 0;
};

class Session {
 public:
  using Body = absl::FunctionRef<Status(InteractiveTransaction&)>;

  virtual ~Session() = default;
  // Runs the steps as one transaction, again and again until it commits. All that it returns goes through `check`, which is told when
  // an attempt begins. Errors: what repetition does not mend; CORRUPTION if a record that must be there is not.
  virtual Status Run(absl::Span<const Step> steps, ReadCheck* check) = 0;

  // Each `of_each` steps are a transaction; all of them are under way at the same time where the store can, and in no order; else one after the
  // other. Every one is shown to `check`, and committed there. REQUIRES: of_each divides the number of steps.
  virtual Status RunTogether(absl::Span<const Step> steps, size_t of_each, ReadCheck* check) {
    for (size_t first = 0; first < steps.size(); first += of_each) {
      DEUT_RETURN_IF_ERROR(Run(steps.subspan(first, of_each), check));
      DEUT_RETURN_IF_ERROR(check->Commit());
    }
    return Status();
  }

  // Runs `body` as one transaction, again and again until it commits; with an error of the body's own (CONDITION_FAILED) it is rolled back. Without
  // `writes` it only reads. INVALID_ARGUMENT where BackendFacts::interactive is false.
  virtual Status RunInteractive(bool writes, Body body) = 0;

  // Attempts that were repeated, so far.
  uint64_t retries() const { return retries_; }

 protected:
  uint64_t retries_ = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendFacts Facts() const = 0;
  // Whether commits from now on are on the disk when they are acknowledged. REQUIRES: no session is in use.
  virtual Status SetDurable(bool durable) = 0;
  virtual Result<std::unique_ptr<Session>> NewSession() = 0;
  // After loading: puts what it holds into the form that it is best read from, where a store has a call for that. REQUIRES: no session is in use.
  virtual Status Settle() { return Status(); }
  // Names and numbers of what the store did, for the result; may be empty.
  virtual std::string StatisticsJson() { return "{}"; }
};

// Defined by the one backend that is linked.
Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options);

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_BACKEND_H_
