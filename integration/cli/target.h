// Target: the store that a program is to use, as its flags name it: one in another process, or one inside this process (embedded).
//   --target=HOST:PORT | unix:/PATH    a tcd; --tls_cert --tls_key --tls_ca --insecure as for the daemons, --tls_allow: its names
//   --target=embedded --data_dir=DIR   both components here, data in DIR; takes the flags of tcd and dcd, too
// Thread-safety: constant after opening; the client is for all threads. Ownership: the client, and an embedded store, end with it.
#ifndef INTEGRATION_CLI_TARGET_H_
#define INTEGRATION_CLI_TARGET_H_

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/config/flags.h"
#include "integration/embedded/embedded.h"
#include "tc/client/client.h"
#include "tc/client/connect.h"

namespace deut::cli {

struct TargetOptions {
  std::string target = "127.0.0.1:7701";
  // The client's options are those of an embedded store, too.
  ConnectOptions connect;
  EmbeddedOptions embedded;
};

void AddTargetFlags(FlagSet* flags, TargetOptions* options);

class Target {
 public:
  // Contacts nothing yet, unless embedded: then the store is open and serving, or the error says why not.
  static Result<std::unique_ptr<Target>> Open(const TargetOptions& options);

  Client& client() { return *client_; }

 private:
  Target() = default;

  std::unique_ptr<Embedded> embedded_;
  std::unique_ptr<Client> connected_;
  Client* client_ = nullptr;  // one of the two
};

}  // namespace deut::cli

#endif  // INTEGRATION_CLI_TARGET_H_
