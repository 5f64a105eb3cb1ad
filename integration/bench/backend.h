// Backend: a store to be measured: this project's, or a rival's. Each store has one file that defines OpenBackend, so
// each program contains one store. options.md has the options of each rival, with reasons.
// Thread-safety: one thread uses a Backend. One thread uses each of its sessions, all of them in parallel. Ownership:
// sessions end before their backend.
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
  kUpdate,  // of an existing record, without reading it where the store can do that
  kInsert,  // of a record that does not exist
  kScan,
  kReadModifyWrite,  // the client reads the value before it sends the write
};
constexpr int kStepKinds = 5;

// One operation of a transaction. Views must live until Session::Run returns.
struct Step {
  StepKind kind = StepKind::kRead;
  std::string_view key = {};    // kScan: an existing record, where the scan begins
  std::string_view value = {};  // value of a write
  uint32_t limit = 0;           // kScan: maximum number of records
};

struct BackendOptions {
  std::string directory;  // for this store only; exists and is empty
  // Memory for cached data: the same for every store that has such an option.
  uint64_t cache_bytes = uint64_t{1} << 30;
  // The store's variant, by a name of its own ("plain", "optimistic"); empty = the first one.
  std::string variant;
  // Address of a server, which serves only this run: its content is removed. Empty = the store runs in this process.
  std::string target;
  // For this project's store: allows a server without TLS at any address, as all rivals do.
  bool insecure = false;
  uint32_t max_threads = 128;
};

// Facts that are printed beside the numbers.
struct BackendFacts {
  std::string name;         // with the version
  std::string isolation;    // of transactions of several operations
  bool interactive = true;  // the store supports Session::RunInteractive
  std::string buffered;     // the meaning of an acknowledged commit without ...
  std::string durable;      // ... and with durability
};

// Direction of a scan.
enum class Order : uint8_t { kAscending, kDescending };

// A transaction whose operations depend on what it has read. A call sees the writes before it. ABORTED ends the
// attempt, which the store then retries; the body must return it, and any other error, at once. Views passed in are
// used only during the call.
class InteractiveTransaction {
 public:
  virtual ~InteractiveTransaction() = default;
  // Returns each record's value, or nothing; in one round trip where the store can.
  virtual Status Get(absl::Span<const std::string> keys, std::vector<std::optional<std::string>>* values) = 0;
  // Reads at most `limit` records of [low, high).
  virtual Status Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
                      absl::FunctionRef<void(std::string_view key, std::string_view value)> record) = 0;
  // Writes the record, whether it exists or not. The store may delay writes until the next read, or until the end.
  virtual Status Put(std::string_view key, std::string_view value) = 0;
  virtual Status Remove(std::string_view key) = 0;
};

class Session {
 public:
  using Body = absl::FunctionRef<Status(InteractiveTransaction&)>;

  virtual ~Session() = default;
  // Runs the steps as one transaction, and retries it until it commits. Passes everything that it returns through
  // `check`, which learns when an attempt begins. Errors: those that a retry does not resolve; CORRUPTION if a record
  // that must exist does not.
  virtual Status Run(absl::Span<const Step> steps, ReadCheck* check) = 0;

  // Every `steps_per_transaction` steps are a transaction. All of them run in parallel and in any order where the store
  // can, otherwise one after the other. `check` sees every transaction, and commits each. REQUIRES:
  // steps_per_transaction divides the number of steps.
  virtual Status RunPipelined(absl::Span<const Step> steps, size_t steps_per_transaction, ReadCheck* check) {
    for (size_t first = 0; first < steps.size(); first += steps_per_transaction) {
      DEUT_RETURN_IF_ERROR(Run(steps.subspan(first, steps_per_transaction), check));
      DEUT_RETURN_IF_ERROR(check->Commit());
    }
    return Status();
  }

  // Runs `body` as one transaction, and retries it until it commits. An error of the body's own (CONDITION_FAILED)
  // rolls it back. Without `writes` it only reads. INVALID_ARGUMENT if BackendFacts::interactive is false.
  virtual Status RunInteractive(bool writes, Body body) = 0;

  // Number of attempts so far that were retried.
  uint64_t retries() const { return retries_; }

 protected:
  uint64_t retries_ = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendFacts Facts() const = 0;
  // Sets whether later commits are on the disk when they are acknowledged. REQUIRES: no session is in use.
  virtual Status SetDurable(bool durable) = 0;
  virtual Result<std::unique_ptr<Session>> NewSession() = 0;
  // Called after loading. Rearranges the data for reads, where the store has a call for that. REQUIRES: no session is
  // in use.
  virtual Status Settle() { return Status(); }
  // Returns the store's counters by name, for the result; may be empty.
  virtual std::string StatisticsJson() { return "{}"; }
};

// Defined by the one backend that is linked.
Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options);

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_BACKEND_H_
