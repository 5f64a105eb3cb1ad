// ConnectOptions: options of Client::Connect, for a store in another process. Link //tc/client to use it.
#ifndef TC_CLIENT_CONNECT_H_
#define TC_CLIENT_CONNECT_H_

#include "protocol/connections/tls.h"
#include "tc/client/client.h"
#include "tc/client/options.h"

namespace deut {

struct ConnectOptions {
  ClientOptions client = {};
  // Certificate, key and authority, and the names that the store may have. Needed unless the address is on this
  // machine.
  TlsOptions tls = {};
  // Permits a connection to another machine without TLS.
  bool insecure = false;
  // Number of network connections; sessions are spread over them. One is enough for some dozens of threads.
  int connections = 2;
};

}  // namespace deut

#endif  // TC_CLIENT_CONNECT_H_
