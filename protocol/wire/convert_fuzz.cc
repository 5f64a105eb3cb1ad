// Fuzzes conversion. For any bytes as a message, it returns an error, or a value that fits the limits; an accepted
// value converts back.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "protocol/limits.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)};

void DataMessages(const std::string& bytes) {
  wire::DataRequests requests;
  if (requests.ParseFromString(bytes)) {
    for (const wire::DataItem& item : requests.items()) {
      DataRequest request;
      if (!FromWire(item, kSender, &request).ok()) continue;
      DEUT_CHECK(request.key.size() <= kMaxKeyBytes && request.low.size() <= kMaxBoundBytes);
      wire::DataItem again;
      ToWire(request, item.id(), &again);
      DEUT_CHECK(again.ByteSizeLong() <= WireBytes(request));
    }
  }
  wire::DataAnswers answers;
  if (answers.ParseFromString(bytes)) {
    for (wire::DataAnswer& item : *answers.mutable_items()) {
      DataRequest read, scan;
      read.key = "k";
      scan.kind = DataRequest::Kind::kScan;
      scan.low = "a";
      scan.high = "z";
      wire::DataAnswer copy = item;
      FromWire(&copy, DcIncarnation(1), &read);
      FromWire(&item, DcIncarnation(1), &scan);
      if (read.status.ok()) DEUT_CHECK(read.answer.size() <= 1);
      if (scan.status.ok() && !scan.complete) DEUT_CHECK(scan.covered > "a" && scan.covered <= "z");
    }
  }
}

void StreamMessages(const std::string& bytes) {
  wire::ApplyLogRequest request;
  if (request.ParseFromString(bytes) && request.has_batch()) {
    LogBatch batch;
    if (FromWire(request.mutable_batch(), &batch).ok()) {
      for (LogBatch::Iterator it(batch); it.Valid(); it.Next()) DEUT_CHECK(it.entry().position <= batch.to);
    }
    // A wrong checksum would keep the fuzzer out of the code behind the check, so it is computed anew here.
    wire::ApplyLogRequest again;
    if (again.ParseFromString(bytes)) {
      LogBatch unchecked{.from = FromWire(again.batch().from()),
                         .to = FromWire(again.batch().to()),
                         .entries = again.batch().entries(),
                         .durable = Lsn(again.batch().durable())};
      again.mutable_batch()->set_crc32c(unchecked.Checksum());
      (void)FromWire(again.mutable_batch(), &batch).ok();
    }
  }
  wire::ScanOpen open;
  Sender sender;
  ScanSpec spec;
  if (open.ParseFromString(bytes) && FromWire(open, &sender, &spec).ok()) DEUT_CHECK(spec.batch_bytes <= kMaxScanBytes);
  wire::ScanAnswer answer;
  ScanBatch batch;
  if (answer.ParseFromString(bytes))
    (void)FromWire(&answer, ScanSpec{.table = TableId(1), .range = {"a", "z"}}, &batch).ok();
  wire::PartitionAnswer partition;
  if (partition.ParseFromString(bytes)) (void)FromWire(partition, 4).ok();
  wire::HelloAnswer hello;
  if (hello.ParseFromString(bytes)) (void)FromWire(hello).ok();
}

void SessionMessages(const std::string& bytes) {
  wire::SessionRequests requests;
  if (requests.ParseFromString(bytes)) {
    for (const wire::SessionRequest& request : requests.requests()) {
      TransactionOptions options;
      std::vector<Operation> operations;
      const bool begin = FromWire(request.one_shot().begin(), &options).ok();
      if (begin) DEUT_CHECK(CheckOptions(options).ok());
      if (FromWire(request.execute().operations(), &operations).ok()) DEUT_CHECK(CheckOperations(operations).ok());
      if (FromWire(request.one_shot().operations(), &operations).ok()) DEUT_CHECK(CheckOperations(operations).ok());
    }
  }
  wire::SessionAnswers answers;
  if (answers.ParseFromString(bytes)) {
    for (wire::SessionAnswer& answer : *answers.mutable_answers()) {
      (void)FromWire(answer.status()).ToString();
      for (wire::OperationResult& result : *answer.mutable_results()) {
        OperationResult out;
        wire::OperationResult copy = result, third = result;
        (void)FromWire(&result, Operation{.kind = OperationKind::kScan, .low = "a", .high = "z"}, &out).ok();
        OperationResult point;
        const bool fits = FromWire(&copy, Operation{.kind = OperationKind::kGet, .key = "k"}, &point).ok();
        if (fits && point.status.ok()) DEUT_CHECK(point.records.size() <= 1);
        OperationResult compared;
        const Operation compare{.kind = OperationKind::kCompareAndSet, .key = "k", .expected = "e"};
        if (FromWire(&third, compare, &compared).ok()) DEUT_CHECK(compared.records.size() <= 1);
      }
    }
  }
}

void ControlMessages(const std::string& bytes) {
  wire::OutcomeRequest asked;
  TransactionName name;
  if (asked.ParseFromString(bytes) && FromWire(asked, &name).ok()) {
    wire::OutcomeRequest again;
    ToWire(name, &again);
    DEUT_CHECK(name.id.given() && again.id() == asked.id());
  }
  wire::OutcomeAnswer outcome;
  if (outcome.ParseFromString(bytes)) (void)FromWire(outcome).ok();
  wire::GetStatusAnswer status;
  if (status.ParseFromString(bytes)) (void)FromWire(status).ok();
  wire::ListTablesAnswer tables;
  std::vector<TableInfo> listed;
  if (tables.ParseFromString(bytes)) (void)FromWire(tables.tables(), &listed).ok();
  wire::PartitionRequest partition;
  Sender sender;
  TableId table;
  uint32_t pieces = 0;
  if (partition.ParseFromString(bytes) && FromWire(partition, &sender, &table, &pieces).ok())
    DEUT_CHECK(pieces >= 1 && pieces <= kMaxPartitions);
  wire::HelloRequest hello;
  HelloRequest request;
  if (hello.ParseFromString(bytes)) (void)FromWire(hello, &request).ok();
}

// Valid messages to start from, because random bytes alone seldom get past the parser.
std::vector<std::string> ValidMessages() {
  std::vector<std::string> all;
  wire::DataRequests requests;
  ToWire(kSender, requests.mutable_sender());
  DataRequest read, scan;
  read.key = "k";
  scan.kind = DataRequest::Kind::kScan;
  scan.low = "a";
  scan.high = "z";
  ToWire(read, 1, requests.add_items());
  ToWire(scan, 2, requests.add_items());
  all.push_back(requests.SerializeAsString());

  read.answer.Append("k", "value", Version{Timestamp(1), 1});
  scan.answer = read.answer;
  scan.covered = "l";
  wire::DataAnswers answers;
  ToWire(read, 1, answers.add_items());
  ToWire(scan, 2, answers.add_items());
  all.push_back(answers.SerializeAsString());

  LogBatch batch{.from = Position{Lsn(1), 0}, .to = Position{Lsn(9), 9}, .entries = {}};
  batch.Append({.kind = LogEntryKind::kPut,
                .position = {Lsn(5), 1},
                .timestamp = Timestamp(1),
                .table = TableId(1),
                .key = "k",
                .value = "v"});
  batch.Append({.kind = LogEntryKind::kLowWater,
                .position = {Lsn(6), 0},
                .timestamp = Timestamp(1),
                .table = {},
                .key = {},
                .value = {}});
  wire::ApplyLogRequest apply;
  ToWire(batch, apply.mutable_batch());
  all.push_back(apply.SerializeAsString());

  wire::SessionRequests session;
  TransactionOptions options;
  options.declared = {{TableId(1), "k"}};
  ToWire(options, session.add_requests()->mutable_one_shot()->mutable_begin());
  for (wire::OperationKind kind : {wire::GET, wire::PUT, wire::INSERT, wire::UPDATE, wire::REMOVE, wire::SCAN}) {
    for (wire::Operation* operation : {session.mutable_requests(0)->mutable_one_shot()->add_operations(),
                                       session.mutable_requests(0)->mutable_one_shot()->add_operations()}) {
      operation->set_kind(kind);
      operation->set_key("k");
      operation->set_limit_bytes(9);
    }
  }
  *session.add_requests()->mutable_execute()->mutable_operations() = session.requests(0).one_shot().operations();
  all.push_back(session.SerializeAsString());

  wire::SessionAnswers results;
  OperationResult result;
  result.records.Append("k", "v", Version());
  result.resume = "l";
  ToWire(result, results.add_answers()->add_results());
  ToWire(Status::Aborted(AbortInfo{.reason = AbortReason::kRangeWriter, .table = 1, .key = "k", .other_timestamp = 2},
                         "m"),
         results.mutable_answers(0)->mutable_status());
  all.push_back(results.SerializeAsString());
  return all;
}

// Takes the input as a list of changes (place, new byte) to one of the valid messages.
std::string Changed(const uint8_t* data, size_t size) {
  static const std::vector<std::string> valid = ValidMessages();
  std::string bytes = valid[data[0] % valid.size()];
  for (size_t i = 1; i + 1 < size; i += 2) bytes[data[i] % bytes.size()] = static_cast<char>(data[i + 1]);
  return bytes;
}

void PlayAll(const std::string& bytes) {
  DataMessages(bytes);
  StreamMessages(bytes);
  SessionMessages(bytes);
  ControlMessages(bytes);
}

}  // namespace
}  // namespace deut

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  deut::PlayAll(std::string(reinterpret_cast<const char*>(data), size));
  if (size != 0) deut::PlayAll(deut::Changed(data, size));
  return 0;
}
