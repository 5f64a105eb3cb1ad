// Ports of 127.0.0.1 for the daemons and proxies of tests.
// Thread-safety: any thread.
#ifndef INTEGRATION_HARNESS_PORTS_H_
#define INTEGRATION_HARNESS_PORTS_H_

#include <cstdint>

namespace deut::testing {

// Returns a port of 127.0.0.1 on which no program listens now; each call in a process returns another one. These
// ports are below the range from which the system takes those of outgoing connections, so a killed daemon finds its
// port free again.
uint16_t FreePort();

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_PORTS_H_
