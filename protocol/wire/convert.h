// Conversions between messages (protocol/wire/*.proto) and the C++ types of the interfaces, for the types that both services
// share. (convert_data_component.h and convert_transaction_service.h have the rest.)
//
// ToWire fills an empty message and cannot fail. FromWire is the one place where bytes from a peer are checked: every
// length, range and enum. It returns INVALID_ARGUMENT or CORRUPTION with the field's name, its value and the limit; the
// caller must not use the output then. It never trusts a count before it has compared it with a limit.
// Thread-safety: pure functions.
#ifndef PROTOCOL_WIRE_CONVERT_H_
#define PROTOCOL_WIRE_CONVERT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "google/protobuf/repeated_field.h"
#include "protocol/data_component.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/types.pb.h"

namespace deut {

// A code that this program does not know becomes INTERNAL and keeps its message.
void ToWire(const Status& status, wire::Status* out);
Status FromWire(const wire::Status& status);

void ToWire(Position position, wire::Position* out);
Position FromWire(const wire::Position& position);

void ToWire(const std::vector<TableInfo>& tables, google::protobuf::RepeatedPtrField<wire::TableInfo>* out);
Status FromWire(const google::protobuf::RepeatedPtrField<wire::TableInfo>& tables, std::vector<TableInfo>* out);

void ToWire(const std::vector<CounterValue>& counters, google::protobuf::RepeatedPtrField<wire::Counter>* out);
void FromWire(const google::protobuf::RepeatedPtrField<wire::Counter>& counters, std::vector<CounterValue>* out);

Status FromWire(wire::Direction direction, Direction* out);

// Deadlines travel as the remaining time, because the clocks of two machines are unrelated. 0 = no limit. A deadline
// that has passed travels as 1 microsecond.
uint64_t TimeoutToWire(Runtime& runtime, Deadline deadline);
Deadline DeadlineFromWire(Runtime& runtime, uint64_t timeout_us);

// INVALID_ARGUMENT, with the name `field`, unless `key` has 1 to kMaxKeyBytes bytes.
Status CheckKey(std::string_view field, std::string_view key);
// As CheckKey, for a bound of a range: 0 to kMaxBoundBytes bytes.
Status CheckBound(std::string_view field, std::string_view bound);
Status CheckTableName(std::string_view field, std::string_view name);
// INVALID_ARGUMENT unless least <= figure <= most.
Status CheckFigure(std::string_view field, uint64_t figure, uint64_t least, uint64_t most);
// VERSION_MISMATCH, with both versions, unless `theirs` is kProtocolVersion.
Status CheckProtocolVersion(std::string_view peer, uint32_t theirs);

// Puts an element's place in front of its refusal: "tables[3].name: a table name of 0 bytes; ...".
Status At(std::string_view list, size_t index, const Status& status);

// CORRUPTION unless the records are in `direction`'s order, without duplicates, within [low, high).
Status CheckRecordOrder(const RecordBatch& records, std::string_view low, std::string_view high, Direction direction);

}  // namespace deut

#endif  // PROTOCOL_WIRE_CONVERT_H_
