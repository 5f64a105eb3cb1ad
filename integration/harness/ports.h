// Ports of 127.0.0.1 for daemons and proxies of tests.
#ifndef INTEGRATION_HARNESS_PORTS_H_
#define INTEGRATION_HARNESS_PORTS_H_

#include <cstdint>

namespace deut::testing {

// A port of 127.0.0.1 where nobody listens now; each call of a process answers another one. They are below the range from which the
// system takes the ports of outgoing connections, so a killed daemon finds its port free again.
uint16_t FreePort();

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_PORTS_H_
