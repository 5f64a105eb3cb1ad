#include "dc/server/server_fixture.h"

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "protocol/record_batch.h"

namespace deut::dc {

DataComponentOptions SmallServer() {
  DataComponentOptions options;
  options.directory = "/data/dc";
  options.records.tree.leaf_page_bytes = 1024;
  options.records.tree.inner_page_bytes = 512;
  options.records.tree.leaf_chain_length = 4;
  options.records.max_pages = 1 << 20;
  return options;
}

Result<std::unique_ptr<DataComponentServer>> OpenServer(Storage& storage) {
  return DataComponentServer::Open(SmallServer(), storage, RealRuntime());
}

std::unique_ptr<DataComponentServer> StartServer(Storage& storage) {
  auto server = OpenServer(storage);
  DEUT_CHECK(server.ok());
  return std::move(*server);
}

HelloRequest HelloOf(uint64_t epoch, uint64_t nonce, uint64_t tc) {
  HelloRequest request;
  request.tc = TcId(tc);
  request.epoch = TcEpoch(epoch);
  request.nonce = nonce;
  return request;
}

Sender SayHello(DataComponent& dc, uint64_t epoch, uint64_t nonce) {
  const HelloRequest request = HelloOf(epoch, nonce);
  const auto answer = dc.Hello(request, kNoDeadline);
  DEUT_CHECK(answer.ok());
  return Sender{request.tc, request.epoch, request.nonce, answer->incarnation};
}

TestLog& TestLog::Entry(LogEntryKind kind, uint64_t timestamp, std::string_view key, std::string_view value,
                        TableId table) {
  LogEntryView entry;
  entry.kind = kind;
  entry.position = Position{Lsn(lsn_ += 64), kind == LogEntryKind::kLowWater ? 0u : 1u};
  entry.timestamp = Timestamp(timestamp);
  entry.table = table;
  entry.key = key;
  entry.value = value;
  batch_.Append(entry);
  batch_.to = entry.position;
  return *this;
}

LogBatch TestLog::Take() {
  LogBatch taken = std::move(batch_);
  batch_ = LogBatch();
  batch_.from = batch_.to = taken.to;
  return taken;
}

uint64_t Counter(DataComponent& dc, std::string_view name) {
  const auto counters = dc.Counters(kNoDeadline);
  DEUT_CHECK(counters.ok());
  for (const CounterValue& counter : *counters) {
    if (counter.name == name) return counter.value;
  }
  DEUT_CHECK(false);
}

ReadAnswer Read(DataComponent& dc, const Sender& sender, std::string_view key, TableId table) {
  DataRequest request;
  request.sender = sender;
  request.table = table;
  request.key = key;
  DataRequest* const requests[] = {&request};
  dc.Submit(requests);
  DEUT_CHECK(request.done.Wait(RealRuntime(), kNoDeadline));
  ReadAnswer answer{request.status, std::nullopt, request.answered_by};
  if (!request.answer.empty()) answer.value = std::string(RecordBatch::Iterator(request.answer).record().value);
  return answer;
}

}  // namespace deut::dc
