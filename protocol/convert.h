// Between messages (protocol/*.proto) and the C++ types of the interfaces: what both services share.
// (convert_data_component.h and convert_transaction_service.h have the rest.)
//
// ToWire fills an empty message and cannot fail. FromWire is where bytes of a peer are checked, once: every length, range and
// enum; it returns INVALID_ARGUMENT or CORRUPTION with the name of the field, its figure and the limit, and then the output is not to
// be used. It never trusts a count before it has been compared with a limit.
// Thread-safety: pure functions.
#ifndef PROTOCOL_CONVERT_H_
#define PROTOCOL_CONVERT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "google/protobuf/repeated_field.h"
#include "protocol/data_component.h"
#include "protocol/types.pb.h"

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

// Deadlines travel as the time that is left: clocks of two machines have nothing to do with each other. 0 = without limit; a deadline
// that has passed travels as 1 microsecond.
uint64_t TimeoutToWire(Runtime& runtime, Deadline deadline);
Deadline DeadlineFromWire(Runtime& runtime, uint64_t timeout_us);

// INVALID_ARGUMENT that names `field` unless `key` has 1 to kMaxKeyBytes bytes.
Status CheckKey(std::string_view field, std::string_view key);
// As above for a bound of a range: 0 to kMaxBoundBytes bytes.
Status CheckBound(std::string_view field, std::string_view bound);
Status CheckTableName(std::string_view field, std::string_view name);
// INVALID_ARGUMENT unless least <= figure <= most.
Status CheckFigure(std::string_view field, uint64_t figure, uint64_t least, uint64_t most);
// VERSION_MISMATCH, naming both, unless `theirs` is kProtocolVersion.
Status CheckProtocolVersion(std::string_view peer, uint32_t theirs);

// The refusal of an element with its place in front: "tables[3].name: a table name of 0 bytes; ...".
Status At(std::string_view list, size_t index, const Status& status);

// CORRUPTION unless the records stand in `direction`'s order, without duplicates, inside [low, high).
Status CheckRecordOrder(const RecordBatch& records, std::string_view low, std::string_view high, Direction direction);

}  // namespace deut

#endif  // PROTOCOL_CONVERT_H_
