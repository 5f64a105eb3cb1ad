// What a store's counters say of its health, for a person: one line for each thing that is not as it should be, else one that says so.
// Thread-safety: pure functions.
#ifndef INTEGRATION_CLI_HEALTH_H_
#define INTEGRATION_CLI_HEALTH_H_

#include <string>

#include "protocol/transaction_service.h"

namespace deut::cli {

struct Health {
  bool serves = false;  // transactions and reads
  std::string text;     // lines
};

Health HealthOf(const ServiceStatus& status);

}  // namespace deut::cli

#endif  // INTEGRATION_CLI_HEALTH_H_
