// DataStreamHandler: one Data stream on the server. Its handler thread reads messages, submits their requests in small groups and writes
// what is answered by then; what the component answers later is written by a second thread (answer_queue.h).
// Requests live in their message's Batch until all of them are written; batches are reused, so a stream in steady use allocates little.
// Thread-safety: Run by one thread. Ownership: borrows everything.
#ifndef PROTOCOL_DATA_STREAM_HANDLER_H_
#define PROTOCOL_DATA_STREAM_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "protocol/answer_queue.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/stream_watchdog.h"

namespace deut {

class DataStreamHandler {
 public:
  using Stream = grpc::ServerReaderWriter<wire::DataAnswers, wire::DataRequests>;

  // `max_requests`: see RpcServiceOptions::data_requests; at least one group.
  DataStreamHandler(Runtime& runtime, DataComponent& component, StreamWatchdog& watchdog, size_t max_requests,
                    grpc::ServerContext* context, Stream* stream);
  ~DataStreamHandler();

  // Until the peer or the server ends the stream. Afterwards the component has none of its requests.
  grpc::Status Run();

 private:
  // Submitted together: few, so that what their answers may hold together stays small.
  static constexpr size_t kGroup = 16;

  static constexpr Duration kLookForPeer = milliseconds(100);

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

  std::unique_ptr<Batch> TakeBatch();
  // False: the stream is over.
  bool Handle(std::unique_ptr<Batch> batch);
  bool SubmitGroup(Batch* batch, size_t first, size_t n);
  // Writes until nothing is ready, unless another thread is at it.
  void WriteReady();
  void WriteMessage();
  void Release(Item* item);
  void AbandonAll();

  Runtime& runtime_;
  DataComponent& component_;
  grpc::ServerContext* const context_;
  Stream* const stream_;
  StreamWatchdog::Watch write_watch_;
  AnswerQueue queue_;
  // Of the holder of the writer's role.
  std::vector<DataRequest*> answered_;
  wire::DataAnswers outgoing_;
  // Of the handler thread.
  std::vector<DataRequest*> group_;
  std::vector<DataRequest*> refused_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Batch>> used_ DEUT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Batch>> free_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut

#endif  // PROTOCOL_DATA_STREAM_HANDLER_H_
