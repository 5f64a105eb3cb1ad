#include "protocol/rpc/rpc_event_thread.h"

namespace deut {

RpcEventThread::RpcEventThread(Runtime& runtime) : wait_(runtime) {
  thread_ = runtime.StartThread("rpc-events", [this] { Run(); });
}

RpcEventThread::~RpcEventThread() {
  queue_.Shutdown();
  thread_->Join();
}

void RpcEventThread::Run() {
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    const grpc::CompletionQueue::NextStatus next = wait_.Next(queue_, &tag, &ok, kNoDeadline);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    // There is no deadline, so a timeout means that gRPC's poller has failed. The queue stays usable.
    if (next == grpc::CompletionQueue::GOT_EVENT) static_cast<RpcEvent*>(tag)->Done(ok);
  }
}

}  // namespace deut
