// DataStreamHandler: one Data stream on the server. Its handler reads a message, submits the requests in small groups, writes what is
// answered by then, and reads the next. What the component answers later is written by the thread that answers it, or, if a message is
// being written, by the event of that write (answer_queue.h). So a request that waits for the disk holds up no other, and an answer costs
// no wake-up of a thread.
//
// States of the handler: reading (no thread) -> at work -> reading. At work -> parked (no thread) while there is no room for a group; the
//   thread that makes room posts the handler to the executor. Over, once the peer has ended the stream or sent what is no message: the
//   handler is parked until all that is answered is written, then takes its requests back from the component and ends the call.
// A message of scans that will take some time, at what scans before took each, has another thread wait for events meanwhile (kSomeTime), so the
//   scans of two streams run side by side. Point reads are too short for it. A message that has
//   taken long hands over for good (kLong), or one peer would hold up all streams.
// Requests live in their message's Batch until all of them are written; batches are reused, so a stream in steady use allocates little.
// References: the handler has one from OnTaken until it has ended the call; a thread that answers and writes has one meanwhile.
// Thread-safety and ownership: rpc_call.h; `host` and `request` outlive it.
#ifndef PROTOCOL_DATA_STREAM_HANDLER_H_
#define PROTOCOL_DATA_STREAM_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/answer_queue.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/data_component_host.h"
#include "protocol/rpc_call.h"
#include "protocol/stream_quota.h"

namespace deut {

class DataStreamHandler final : public RpcCall<wire::DataAnswers, wire::DataRequests>, private DataRequestListener {
 public:
  // Asks gRPC for the next such call: `request(context, stream, tag)`.
  using Request =
      std::function<void(grpc::ServerContext* context,
                         grpc::ServerAsyncReaderWriter<wire::DataAnswers, wire::DataRequests>* stream, void* tag)>;
  static void Want(const DataComponentHost& host, const Request& request);

 private:
  // Submitted together: few, so that what their answers may hold together stays small.
  static constexpr size_t kGroup = 16;
  static constexpr Duration kSomeTime = microseconds(50);
  static constexpr Duration kLong = microseconds(500);

  struct Batch;
  struct Item : DataRequest {
    uint64_t id = 0;
    Batch* batch = nullptr;
  };
  struct Batch {
    wire::DataRequests message;
    std::deque<Item> items;  // the first message.items_size() are in use
    size_t unwritten = 0;
  };

  DataStreamHandler(const DataComponentHost& host, const Request& request);
  ~DataStreamHandler() override = default;

  void OnTaken() override;
  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  void OnPeerGone() override;
  void OnAnswered(DataRequest* request) override;

  // Of the handler.
  void TakeMessage();
  void Work();
  // Of the message at work.
  int64_t ScansLeft() const;
  enum class Submitted : uint8_t { kAll, kParked, kClosed };
  // Submits what is left of the message.
  Submitted SubmitAll(MonotonicTime begin);
  void SubmitGroup(size_t n);
  void Over(const Status& status);
  void Finish();
  void AbandonAll();
  // Posts the handler that was parked.
  void SendOn();

  // Of the holder of the writer's role.
  void StartMessages();
  void WriteMessage();
  void MessageOver(bool ok);
  void Return(Item* item);

  const DataComponentHost& host_;
  const Request& request_;
  StreamQuota::Place place_;
  AnswerQueue queue_;
  // Of the holder of the writer's role.
  std::vector<DataRequest*> answered_;
  size_t next_answer_ = 0;  // of answered_
  wire::DataAnswers outgoing_;
  // Of the handler.
  Batch* batch_ = nullptr;  // at work on
  size_t next_item_ = 0;    // of its batch
  Duration scan_takes_{0};  // with the writing of its answer: a moving average
  bool over_ = false;
  Status status_;
  std::vector<DataRequest*> group_;
  std::vector<DataRequest*> refused_;
  Mutex batches_mutex_;
  bool kept_ DEUT_GUARDED_BY(batches_mutex_) = false;  // no batch is given back any more
  std::vector<std::unique_ptr<Batch>> used_ DEUT_GUARDED_BY(batches_mutex_);
  std::vector<std::unique_ptr<Batch>> free_ DEUT_GUARDED_BY(batches_mutex_);
};

}  // namespace deut

#endif  // PROTOCOL_DATA_STREAM_HANDLER_H_
