// Conversions between the messages of transaction_service.proto and the types of transaction_service.h. The rules of
// convert.h apply.
#ifndef PROTOCOL_WIRE_CONVERT_TRANSACTION_SERVICE_H_
#define PROTOCOL_WIRE_CONVERT_TRANSACTION_SERVICE_H_

#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "google/protobuf/repeated_field.h"
#include "protocol/transaction_service.h"
#include "protocol/wire/convert.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.pb.h"

namespace deut {

// True for operations that may change something.
bool Writes(OperationKind kind);

// Checks sizes of keys, bounds and values, and limits of scans. A client checks before it sends, and a server checks
// again.
Status CheckOperation(const Operation& operation);
// Checks the number of operations, and each as CheckOperation does. An error names the operation by its index.
Status CheckOperations(absl::Span<const Operation> operations);
Status CheckOptions(const TransactionOptions& options);

void ToWire(const TransactionName& name, wire::OutcomeRequest* out);
Status FromWire(const wire::OutcomeRequest& request, TransactionName* out);
void ToWire(const Result<OutcomeAnswer>& answer, wire::OutcomeAnswer* out);
Result<OutcomeAnswer> FromWire(const wire::OutcomeAnswer& answer);

void ToWire(const TransactionOptions& options, wire::Begin* out);
Status FromWire(const wire::Begin& begin, TransactionOptions* out);

void ToWire(const Operation& operation, wire::Operation* out);
// Views in `out` point into `operations`, which must stay alive and unchanged while they are used.
Status FromWire(const google::protobuf::RepeatedPtrField<wire::Operation>& operations, std::vector<Operation>* out);

// The bytes for which an operation or a result counts in a message.
size_t WireBytes(const Operation& operation);
size_t WireBytes(const OperationResult& result);

void ToWire(const OperationResult& result, wire::OperationResult* out);
// `operation` is the one that was sent; a result that does not fit it is CORRUPTION. Moves bytes out of `result`.
Status FromWire(wire::OperationResult* result, const Operation& operation, OperationResult* out);

void ToWire(const Result<ServiceStatus>& status, wire::GetStatusAnswer* out);
Result<ServiceStatus> FromWire(const wire::GetStatusAnswer& answer);

}  // namespace deut

#endif  // PROTOCOL_WIRE_CONVERT_TRANSACTION_SERVICE_H_
