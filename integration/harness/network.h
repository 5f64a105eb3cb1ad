// Network: three network namespaces, "client", "tc" and "dc", joined by two veth pairs:
//   client 10.77.1.1 ---- 10.77.1.2 tc 10.77.2.1 ---- 10.77.2.2 dc
// The calling process first moves into namespaces of its own (mounts and network; users, too, if it is not root), in
// which these are the only ones. No other process sees them, and the kernel removes them with the last process,
// however it ends.
// Thread-safety: one thread, before the process starts others.
#ifndef INTEGRATION_HARNESS_NETWORK_H_
#define INTEGRATION_HARNESS_NETWORK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace deut::testing {

constexpr const char* kTcAddressOfClients = "10.77.1.2";
constexpr const char* kDcAddress = "10.77.2.2";

// Call it once per process. UNAVAILABLE with the reason if the machine does not allow it.
Status EnterPrivateNetwork();

// Returns words to put before a program that runs in one of the three namespaces.
inline std::vector<std::string> Inside(const std::string& name) { return {"ip", "netns", "exec", name}; }

// Returns the bytes that this namespace has received and sent over its veth devices.
Result<uint64_t> VethBytes(const std::string& name, const std::string& scratch_file);

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_NETWORK_H_
