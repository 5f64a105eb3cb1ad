// Between the messages of transaction_service.proto and the types of transaction_service.h. Rules of convert.h.
#ifndef PROTOCOL_CONVERT_TRANSACTION_SERVICE_H_
#define PROTOCOL_CONVERT_TRANSACTION_SERVICE_H_

#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "google/protobuf/repeated_field.h"
#include "protocol/convert.h"
#include "protocol/transaction_service.h"
#include "protocol/transaction_service.pb.h"

namespace deut {

// True for the operations that may change something.
bool Writes(OperationKind kind);

// What a client checks before it sends, and a server again when it has received: sizes of keys, bounds and values, limits of scans.
Status CheckOperation(const Operation& operation);
// As CheckOperation for all, and their number; names the operation by its index.
Status CheckOperations(absl::Span<const Operation> operations);
Status CheckOptions(const TransactionOptions& options);

void ToWire(const TransactionName& name, wire::OutcomeRequest* out);
Status FromWire(const wire::OutcomeRequest& request, TransactionName* out);
void ToWire(const Result<OutcomeAnswer>& answer, wire::OutcomeAnswer* out);
Result<OutcomeAnswer> FromWire(const wire::OutcomeAnswer& answer);

void ToWire(const TransactionOptions& options, wire::Begin* out);
Status FromWire(const wire::Begin& begin, TransactionOptions* out);

void ToWire(const Operation& operation, wire::Operation* out);
// Views of the results point into `operations`, which must live and stay unchanged as long as they are used.
Status FromWire(const google::protobuf::RepeatedPtrField<wire::Operation>& operations, std::vector<Operation>* out);

// Bytes that an operation or a result counts for in a message.
size_t WireBytes(const Operation& operation);
size_t WireBytes(const OperationResult& result);

void ToWire(const OperationResult& result, wire::OperationResult* out);
// `operation` is what was asked; an answer that is no answer to it is CORRUPTION. Moves bytes out of `result`.
Status FromWire(wire::OperationResult* result, const Operation& operation, OperationResult* out);

void ToWire(const Result<ServiceStatus>& status, wire::GetStatusAnswer* out);
Result<ServiceStatus> FromWire(const wire::GetStatusAnswer& answer);

}  // namespace deut

#endif  // PROTOCOL_CONVERT_TRANSACTION_SERVICE_H_
