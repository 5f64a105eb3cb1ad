// Embedded runs a TC and a DC inside this process. It is the same code as tcd and dcd, with direct calls in place of
// gRPC.
//
//   deut::EmbeddedOptions options;
//   options.data_dir = "/var/lib/app/store";
//   auto store = deut::Embedded::Open(options);
//   auto table = store.value()->client().CreateTable("accounts");
//
// The directory holds `tc` (the redo log) and `dc`. At most one process has it open at a time.
// Thread-safety: client() and service() are as thread-safe as their classes; one thread calls everything else.
// Ownership: sessions and transactions must end before the store. An Embedded may be a static object: its destructor
// runs after main and keeps every committed transaction, buffered ones included. A transaction or a scanner may not
// be static, because the exiting thread that would destroy it has already lost its thread-local objects.
// Errors: Open returns the start errors of both components, which name the directory and the file.
#ifndef INTEGRATION_PRODUCT_EMBEDDED_EMBEDDED_H_
#define INTEGRATION_PRODUCT_EMBEDDED_EMBEDDED_H_

#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/process_budget.h"
#include "dc/server/data_component_server.h"
#include "protocol/data/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/server/transaction_component.h"

namespace deut {

struct EmbeddedOptions {
  std::string data_dir;
  IoKind io = IoKind::kAuto;
  ClientOptions client = {};
  // The memory budget of the process, which both components share by need (common/sync/process_budget.h); 0: none.
  // Without a value it is half of the memory that the process may use. Memory of the program that embeds the store counts,
  // too. So does that of other stores in the process: each has a budget of its own, and each is given the amount that
  // the process may take as a whole. A store that was first may leave another a sixteenth of it.
  std::optional<uint64_t> memory_bytes;
  // Open sets the budget, and the directories of `tc` and `dc` from data_dir.
  tc::TransactionComponentOptions tc = {};
  dc::DataComponentOptions dc = {};
  // Limit on the time that Open takes: it covers recovery of the log and redo into the DC.
  Duration open_timeout = seconds(600);
};

class Embedded {
 public:
  // Returns when the store serves. The second form uses a storage that the caller owns and that must outlive the
  // store.
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options);
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options, Runtime& runtime, Storage& storage);
  ~Embedded();
  Embedded(const Embedded&) = delete;
  Embedded& operator=(const Embedded&) = delete;

  Client& client() { return *client_; }
  TransactionService& service() { return *tc_; }
  // The memory budget; null: there is none.
  const ProcessBudget* memory() const { return memory_.get(); }
  // Ends the DC's incarnation and starts another, as killing and restarting a dcd does. Transactions continue.
  Status RestartDc();

 private:
  explicit Embedded(Runtime& runtime) : runtime_(runtime) {}

  Runtime& runtime_;
  std::unique_ptr<Storage> owned_storage_;
  std::unique_ptr<ProcessBudget> memory_;  // null: there is none
  std::unique_ptr<InProcessDataComponent> dc_;
  std::unique_ptr<tc::TransactionComponent> tc_;
  std::unique_ptr<Client> client_;
};

}  // namespace deut

#endif  // INTEGRATION_PRODUCT_EMBEDDED_EMBEDDED_H_
