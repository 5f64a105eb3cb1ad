// Target: the store that a program uses, as its flags name it. It runs in another process or inside this one
// (embedded).
//   --target=HOST:PORT | unix:/PATH    a tcd; --tls_cert --tls_key --tls_ca --insecure as for the daemons; --tls_allow: the tcd's names
//   --target=embedded --data_dir=DIR   both components in this process, data in DIR; also accepts the flags of tcd and dcd
// Thread-safety: constant after Open; every thread may use the client.
// Ownership: the Target owns the client and an embedded store, and ends them with itself.
#ifndef INTEGRATION_PRODUCT_CLI_TARGET_H_
#define INTEGRATION_PRODUCT_CLI_TARGET_H_

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/config/flags.h"
#include "integration/product/embedded/embedded.h"
#include "tc/client/client.h"
#include "tc/client/connect.h"

namespace deut::cli {

struct TargetOptions {
  std::string target = "127.0.0.1:7701";
  // An embedded store uses the client options in here, too.
  ConnectOptions connect;
  EmbeddedOptions embedded;
};

void AddTargetFlags(FlagSet* flags, TargetOptions* options);

class Target {
 public:
  // Open does not contact a remote store. An embedded store is open and serving on return, or the error says why not.
  static Result<std::unique_ptr<Target>> Open(const TargetOptions& options);

  Client& client() { return *client_; }

 private:
  Target() = default;

  std::unique_ptr<Embedded> embedded_;
  std::unique_ptr<Client> connected_;
  Client* client_ = nullptr;  // points to the client of whichever of the two is set
};

}  // namespace deut::cli

#endif  // INTEGRATION_PRODUCT_CLI_TARGET_H_
