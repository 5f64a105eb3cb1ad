// DataStreamHandler: one Data stream on the server. Its handler reads a message, submits the requests in small groups,
// writes the answers that are ready, and reads the next message. The thread that brings a later answer writes it. If a
// message is being written, the event of that write sends the answer (answer_queue.h). So a request that waits for the
// disk delays no other, and an answer wakes no thread.
//
// States of the handler:
// - reading (no thread) -> at work -> reading.
// - at work -> parked (no thread) while there is no room for a group. The thread that makes room posts the handler to
//   the executor.
// - over, once the peer has ended the stream or sent an invalid message. The handler is parked until all answers are
//   written. Then it takes its requests back from the component and ends the call.
// Long messages: the handler estimates a message's time from earlier scans. Above kShareEventLoopAfter it lets another thread wait
// for events meanwhile, so the scans of two streams run concurrently. Point reads are too short for that. A message
// that has taken kLeaveEventLoopAfter leaves the waiting to another thread for good, because one peer would otherwise delay all
// streams.
// Requests live in their message's Batch until all of them are written. Batches are reused, so a stream in steady use
// allocates little.
// References: the handler has one from OnAccepted until it has ended the call. A thread that writes an answer has one
// meanwhile.
// Thread-safety and ownership: rpc_call.h; `host` and `request` outlive it.
#ifndef PROTOCOL_DATA_DATA_STREAM_HANDLER_H_
#define PROTOCOL_DATA_DATA_STREAM_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/connections/stream_quota.h"
#include "protocol/data/answer_queue.h"
#include "protocol/data/data_component_host.h"
#include "protocol/data_component.h"
#include "protocol/rpc/rpc_call.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {

class DataStreamHandler final : public RpcCall<wire::DataAnswers, wire::DataRequests>, private DataRequestListener {
 public:
  // Asks gRPC for the next such call, with `request(context, stream, tag)`.
  using Request =
      std::function<void(grpc::ServerContext* context,
                         grpc::ServerAsyncReaderWriter<wire::DataAnswers, wire::DataRequests>* stream, void* tag)>;
  static void RequestNextCall(const DataComponentHost& host, const Request& request);

 private:
  // Requests that are submitted together. They are few, so that their answers together take little memory.
  static constexpr size_t kGroup = 16;
  static constexpr Duration kShareEventLoopAfter = microseconds(50);
  static constexpr Duration kLeaveEventLoopAfter = microseconds(500);

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

  void OnAccepted() override;
  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  void OnPeerGone() override;
  void OnAnswered(DataRequest* request) override;

  // Only the handler calls these.
  void StoreMessage();
  void Work();
  // The scans of the present message that are not submitted yet.
  int64_t ScansLeft() const;
  enum class Submitted : uint8_t { kAll, kParked, kClosed };
  // Submits the rest of the message.
  Submitted SubmitAll(MonotonicTime begin);
  void SubmitGroup(size_t n);
  void Over(const Status& status);
  void Finish();
  void AbandonAll();
  // Posts the handler, which was parked, to the executor.
  void PostHandler();

  // Only the holder of the writer's role calls these.
  void StartMessages();
  void WriteMessage();
  void MessageOver(bool ok);
  void Recycle(Item* item);

  const DataComponentHost& host_;
  const Request& request_;
  StreamQuota::Slot quota_slot_;
  AnswerQueue queue_;
  // Only the holder of the writer's role uses these.
  std::vector<DataRequest*> answered_;
  size_t next_answer_ = 0;  // index into answered_
  wire::DataAnswers outgoing_;
  // Only the handler uses these.
  Batch* batch_ = nullptr;         // the message at work
  size_t next_item_ = 0;           // index into batch_'s items
  Duration average_scan_time_{0};  // the time for one scan and the writing of its answer: a moving average
  bool over_ = false;
  Status status_;
  std::vector<DataRequest*> group_;
  std::vector<DataRequest*> refused_;
  Mutex batches_mutex_;
  bool recycling_stopped_ DEUT_GUARDED_BY(batches_mutex_) = false;  // batches are not reused any more
  std::vector<std::unique_ptr<Batch>> used_ DEUT_GUARDED_BY(batches_mutex_);
  std::vector<std::unique_ptr<Batch>> free_ DEUT_GUARDED_BY(batches_mutex_);
};

}  // namespace deut

#endif  // PROTOCOL_DATA_DATA_STREAM_HANDLER_H_
