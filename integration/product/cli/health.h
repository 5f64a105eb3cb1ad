// Describes a store's health to a person, from the store's counters. The text has one line for each thing that is
// wrong, or one line that says that nothing is.
// Thread-safety: pure functions.
#ifndef INTEGRATION_PRODUCT_CLI_HEALTH_H_
#define INTEGRATION_PRODUCT_CLI_HEALTH_H_

#include <string>

#include "protocol/transaction_service.h"

namespace deut::cli {

struct Health {
  bool serves = false;  // transactions and reads are served
  std::string text;     // whole lines
};

Health HealthOf(const ServiceStatus& status);

}  // namespace deut::cli

#endif  // INTEGRATION_PRODUCT_CLI_HEALTH_H_
