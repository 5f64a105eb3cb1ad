// Client::Connect, with what it takes: the way to a store in another process. Link //tc/client for it.
#ifndef TC_CLIENT_CONNECT_H_
#define TC_CLIENT_CONNECT_H_

#include "protocol/tls.h"
#include "tc/client/client.h"
#include "tc/client/options.h"

namespace deut {

struct ConnectOptions {
  ClientOptions client = {};
  // Certificate, key and authority, and the names the store may have. Needed unless the address is on this machine.
  TlsOptions tls = {};
  // Talk to another machine without TLS all the same.
  bool insecure = false;
  // Network connections; sessions are spread over them. One is enough for some dozens of threads.
  int connections = 2;
};

}  // namespace deut

#endif  // TC_CLIENT_CONNECT_H_
