// Conversions between the messages of data_component.proto and the types of data_component.h. The rules of convert.h
// apply.
#ifndef PROTOCOL_WIRE_CONVERT_DATA_COMPONENT_H_
#define PROTOCOL_WIRE_CONVERT_DATA_COMPONENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/wire/convert.h"
#include "protocol/wire/data_component.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {

void ToWire(const Sender& sender, wire::Sender* out);
Sender FromWire(const wire::Sender& sender);

void ToWire(const HelloRequest& request, wire::HelloRequest* out);
// Answers VERSION_MISMATCH before it checks anything else.
Status FromWire(const wire::HelloRequest& request, HelloRequest* out);
void ToWire(const Result<HelloAnswer>& answer, wire::HelloAnswer* out);
Result<HelloAnswer> FromWire(const wire::HelloAnswer& answer);

// Does not convert `sender`, which belongs to the whole message.
void ToWire(const DataRequest& request, uint64_t id, wire::DataItem* out);
// The bytes for which a request counts in a message (kRequestMessageBytes).
size_t WireBytes(const DataRequest& request);
// Keys and bounds of `out` are views into `item`, which must stay alive and unchanged while they are used.
Status FromWire(const wire::DataItem& item, const Sender& sender, DataRequest* out);

// Converts the answer to `request`: its status and, if OK, the rest.
void ToWire(const DataRequest& request, uint64_t id, wire::DataAnswer* out);
// Fills the request's status, answer, complete and covered, and moves bytes out of `answer`. If the answer does not fit
// this request, the status becomes CORRUPTION. Does not Finish the request.
void FromWire(wire::DataAnswer* answer, DcIncarnation answered_by, DataRequest* request);

void ToWire(const Sender& sender, const ScanSpec& spec, wire::ScanOpen* out);
Status FromWire(const wire::ScanOpen& open, Sender* sender, ScanSpec* out);
void ToWire(const ScanBatch& batch, wire::ScanAnswer* out);
// `spec` is the scan's specification. If the answer has a status, the function returns it.
Status FromWire(wire::ScanAnswer* answer, const ScanSpec& spec, ScanBatch* out);

// INVALID_ARGUMENT if the batch is too large for a message. The sender checks this before it sends.
Status CheckSendable(const LogBatch& batch);
void ToWire(const LogBatch& batch, wire::ApplyLogBatch* out);
// Checks size, checksum and grammar, and moves bytes out of `batch`. CORRUPTION names the positions of the batch.
Status FromWire(wire::ApplyLogBatch* batch, LogBatch* out);

void ToWire(const ApplyAck& ack, wire::ApplyLogAck* out);
ApplyAck FromWire(const wire::ApplyLogAck& ack);

Status FromWire(const wire::PartitionRequest& request, Sender* sender, TableId* table, uint32_t* pieces);
void ToWire(const Result<std::vector<std::string>>& keys, wire::PartitionAnswer* out);
// CORRUPTION unless there are at most pieces - 1 keys, in ascending order.
Result<std::vector<std::string>> FromWire(const wire::PartitionAnswer& answer, uint32_t pieces);

}  // namespace deut

#endif  // PROTOCOL_WIRE_CONVERT_DATA_COMPONENT_H_
