// Embedded: a TC and a DC inside this process: the same code as tcd and dcd, with direct calls in place of gRPC.
//
//   deut::EmbeddedOptions options;
//   options.data_dir = "/var/lib/app/store";
//   auto store = deut::Embedded::Open(options);
//   auto table = store.value()->client().CreateTable("accounts");
//
// The directory holds `tc` (the redo log) and `dc`; one process has it at a time.
// Thread-safety: client() and service() as theirs; the rest by one thread. Ownership: sessions and transactions end before it. It may be a static
// object, which ends after main with all that is committed; transactions and scanners may not, as they are used by a thread that is at its end.
// Errors: those of both components' start, naming directory and file.
#ifndef INTEGRATION_EMBEDDED_EMBEDDED_H_
#define INTEGRATION_EMBEDDED_EMBEDDED_H_

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "protocol/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/server/transaction_component.h"

namespace deut {

struct EmbeddedOptions {
  std::string data_dir;
  IoKind io = IoKind::kAuto;
  ClientOptions client = {};
  // Their directories are set from data_dir.
  tc::TransactionComponentOptions tc = {};
  dc::DataComponentOptions dc = {};
  // How long opening may take: recovery of the log, and redo into the DC.
  Duration open_timeout = seconds(600);
};

class Embedded {
 public:
  // Returns when it serves. The second form uses a storage of the caller's, which outlives it.
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options);
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options, Runtime& runtime, Storage& storage);
  ~Embedded();
  Embedded(const Embedded&) = delete;
  Embedded& operator=(const Embedded&) = delete;

  Client& client() { return *client_; }
  TransactionService& service() { return *tc_; }
  // Ends the DC's life and begins another, as killing and restarting a dcd does. Transactions go on.
  Status RestartDc();

  const std::string& io_name() const { return io_name_; }

 private:
  explicit Embedded(Runtime& runtime) : runtime_(runtime) {}

  Runtime& runtime_;
  std::string io_name_;
  std::unique_ptr<Storage> owned_storage_;
  std::unique_ptr<InProcessDataComponent> dc_;
  std::unique_ptr<tc::TransactionComponent> tc_;
  std::unique_ptr<Client> client_;
};

}  // namespace deut

#endif  // INTEGRATION_EMBEDDED_EMBEDDED_H_
