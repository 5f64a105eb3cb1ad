// The tables of TATP as records. A row's key is its table's prefix and its primary key. The index of subscribers by
// number consists of records, too.
#ifndef INTEGRATION_BENCH_TATP_SCHEMA_H_
#define INTEGRATION_BENCH_TATP_SCHEMA_H_

#include <cstdint>
#include <string>

#include "integration/bench/row.h"

namespace deut::bench::tatp {

constexpr uint32_t kKinds = 4;  // number of kinds of access rights, and of facilities
constexpr uint32_t kStarts[] = {0, 8, 16};

struct Subscriber {
  uint32_t msc_location, vlr_location;
  uint8_t bits[10], hexes[10], bytes[10];
  char spare[2];
};

struct AccessInfo {
  uint8_t data[2];
  char texts[8];  // texts of 3 and of 5 characters
};

struct SpecialFacility {
  uint8_t active, error, data;
  char text[5];
};

struct CallForwarding {
  uint8_t end_time;
  char number[15];
};

constexpr int kSubscriberDigits = 9, kKindDigits = 1, kTimeDigits = 2, kNumberDigits = 15;

inline std::string SubscriberKey(uint32_t s) { return MakeRowKey("Ts", {{s, kSubscriberDigits}}); }
// A subscriber's number is its identity, in 15 digits.
inline std::string NumberKey(uint32_t s) { return MakeRowKey("Tn", {{s, kNumberDigits}}); }
inline std::string AccessKey(uint32_t s, uint32_t kind) {
  return MakeRowKey("Ta", {{s, kSubscriberDigits}, {kind, kKindDigits}});
}
inline std::string FacilityKey(uint32_t s, uint32_t kind) {
  return MakeRowKey("Tf", {{s, kSubscriberDigits}, {kind, kKindDigits}});
}
inline std::string ForwardingKey(uint32_t s, uint32_t kind, uint32_t start) {
  return MakeRowKey("Tc", {{s, kSubscriberDigits}, {kind, kKindDigits}, {start, kTimeDigits}});
}

}  // namespace deut::bench::tatp

#endif  // INTEGRATION_BENCH_TATP_SCHEMA_H_
