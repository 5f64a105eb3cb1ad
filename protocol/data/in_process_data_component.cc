#include "protocol/data/in_process_data_component.h"

#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut {
namespace {

Status Dead() { return DEUT_ERROR(kUnavailable, "the data component in this process is stopped"); }

}  // namespace

// The nodes of open streams, in a list so that Kill finds all of them. A node is linked once, by compare-and-swap on
// the head, and stays. Its `used` flag takes and frees it. The stream's owner touches `inner` only inside calls_inside_, and
// Kill only once calls_inside_ is empty.
template <typename Node>
class InProcessDataComponent::NodeList {
 public:
  ~NodeList() {
    for (Node* node = head_.load(std::memory_order_acquire); node != nullptr;) {
      DEUT_CHECK(!node->used.load(std::memory_order_acquire));  // else a stream outlives the object it came from
      delete std::exchange(node, node->next);
    }
  }

  Node* Acquire() {
    for (Node* node = head_.load(std::memory_order_acquire); node != nullptr; node = node->next) {
      bool used = false;
      if (!DEUT_CAS_FAILS("in_process.take_node") &&
          node->used.compare_exchange_strong(used, true, std::memory_order_acq_rel)) {
        return node;
      }
    }
    Node* node = new Node;
    node->used.store(true, std::memory_order_relaxed);
    node->next = head_.load(std::memory_order_acquire);
    DEUT_POINT("in_process.push_node");
    while (DEUT_CAS_FAILS("in_process.push_node") ||
           !head_.compare_exchange_strong(node->next, node, std::memory_order_acq_rel)) {
    }
    return node;
  }

  static void Free(Node* node) { node->used.store(false, std::memory_order_release); }

  template <typename Visit>
  void ForEach(Visit visit) {
    for (Node* node = head_.load(std::memory_order_acquire); node != nullptr; node = node->next) visit(*node);
  }

 private:
  std::atomic<Node*> head_{nullptr};
};

struct InProcessDataComponent::ScanNode {
  ScanNode* next = nullptr;  // constant once linked
  std::atomic<bool> used{false};
  std::unique_ptr<ScanStream> inner;
};

// Stands between the incarnation's stream and the user's listener. So the listener gets exactly one OnClosed, no matter
// how the stream ends.
struct InProcessDataComponent::ApplyNode final : public ApplyLogListener {
  ApplyNode* next = nullptr;  // constant once linked
  std::atomic<bool> used{false};
  std::unique_ptr<ApplyLogStream> inner;
  ApplyLogListener* target = nullptr;
  std::atomic<bool> killed{false};
  std::atomic<bool> closed{false};

  void Arm(ApplyLogListener* listener) {
    target = listener;
    killed.store(false, std::memory_order_relaxed);
    closed.store(false, std::memory_order_release);
  }
  void End(const Status& status) {
    inner.reset();
    OnClosed(status);
  }
  void OnAck(const ApplyAck& ack) override { target->OnAck(ack); }
  void OnClosed(const Status& status) override {
    if (closed.exchange(true, std::memory_order_acq_rel)) return;
    target->OnClosed(killed.load(std::memory_order_acquire) ? Dead() : status);
  }
};

class InProcessDataComponent::Scan final : public ScanStream {
 public:
  Scan(InProcessDataComponent& owner, ScanNode* node) : owner_(owner), node_(node) {}
  ~Scan() override {
    {
      CallDrain::Call call(owner_.calls_inside_);
      if (call.entered()) {
        node_->inner.reset();
      } else {
        owner_.WaitKilled();
      }
    }
    NodeList<ScanNode>::Free(node_);
  }

  Status Grant(std::string_view bound, uint64_t bytes) override {
    CallDrain::Call call(owner_.calls_inside_);
    if (!call.entered() || node_->inner == nullptr) return Dead();
    return node_->inner->Grant(bound, bytes);
  }

  Status Next(ScanBatch* batch, Deadline deadline) override {
    CallDrain::Call call(owner_.calls_inside_);
    if (!call.entered() || node_->inner == nullptr) return Dead();
    return node_->inner->Next(batch, deadline);
  }

  bool ReadsAhead() const override {
    CallDrain::Call call(owner_.calls_inside_);
    return call.entered() && node_->inner != nullptr && node_->inner->ReadsAhead();
  }

 private:
  InProcessDataComponent& owner_;
  ScanNode* const node_;
};

class InProcessDataComponent::ApplyLog final : public ApplyLogStream {
 public:
  ApplyLog(InProcessDataComponent& owner, ApplyNode* node) : owner_(owner), node_(node) {}
  ~ApplyLog() override {
    {
      CallDrain::Call call(owner_.calls_inside_);
      if (!call.entered()) {
        owner_.WaitKilled();
      } else if (node_->inner != nullptr) {
        node_->End(Status(ErrorCode::kCancelled, "the log stream was closed by its sender"));
      }
    }
    NodeList<ApplyNode>::Free(node_);
  }

  Status Send(const LogBatch& batch, Deadline deadline) override {
    CallDrain::Call call(owner_.calls_inside_);
    if (!call.entered() || node_->inner == nullptr) return Dead();
    return node_->inner->Send(batch, deadline);
  }

 private:
  InProcessDataComponent& owner_;
  ApplyNode* const node_;
};

InProcessDataComponent::InProcessDataComponent(Runtime& runtime, Factory factory)
    : runtime_(runtime),
      factory_(std::move(factory)),
      mutex_(runtime),
      calls_inside_(runtime),
      scans_(std::make_unique<NodeList<ScanNode>>()),
      apply_logs_(std::make_unique<NodeList<ApplyNode>>()) {}

InProcessDataComponent::~InProcessDataComponent() { Kill(); }

Status InProcessDataComponent::Start() {
  MutexLock lock(mutex_);
  if (component_ != nullptr) return DEUT_ERROR(kWrongState, "the data component in this process is running already");
  DEUT_ASSIGN_OR_RETURN(component_, factory_());
  calls_inside_.Open();
  return Status::Ok();
}

void InProcessDataComponent::Kill() {
  MutexLock lock(mutex_);
  if (component_ == nullptr) return;
  kills_.fetch_add(1, std::memory_order_seq_cst);
  calls_inside_.Close();
  scans_->ForEach([](ScanNode& node) { node.inner.reset(); });
  apply_logs_->ForEach([](ApplyNode& node) {
    if (node.inner == nullptr) return;
    node.killed.store(true, std::memory_order_release);
    node.End(Dead());
  });
  component_.reset();
  kills_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(kills_);
}

void InProcessDataComponent::WaitKilled() {
  const uint32_t kills = kills_.load(std::memory_order_seq_cst);
  if (kills % 2 == 0) return;
  while (kills_.load(std::memory_order_seq_cst) == kills) runtime_.Wait(kills_, kills, kNoDeadline);
}

Result<HelloAnswer> InProcessDataComponent::Hello(const HelloRequest& request, Deadline deadline) {
  CallDrain::Call call(calls_inside_);
  if (!call.entered()) return Dead();
  return component_->Hello(request, deadline);
}

void InProcessDataComponent::Submit(absl::Span<DataRequest* const> requests) {
  CallDrain::Call call(calls_inside_);
  if (call.entered()) [[likely]] {
    component_->Submit(requests);
    return;
  }
  for (DataRequest* request : requests) {
    request->status = Dead();
    request->Finish(runtime_);
  }
}

void InProcessDataComponent::Abandon(DataRequest* request) {
  CallDrain::Call call(calls_inside_);
  if (call.entered()) {
    component_->Abandon(request);
  } else {
    WaitKilled();
  }
}

std::shared_ptr<DirectReads> InProcessDataComponent::OpenReads(const Sender& sender) {
  CallDrain::Call call(calls_inside_);
  return call.entered() ? component_->OpenReads(sender) : nullptr;
}

Result<std::unique_ptr<ScanStream>> InProcessDataComponent::OpenScan(const Sender& sender, const ScanSpec& spec,
                                                                     Deadline deadline) {
  CallDrain::Call call(calls_inside_);
  if (!call.entered()) return Dead();
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<ScanStream> inner, component_->OpenScan(sender, spec, deadline));
  ScanNode* node = scans_->Acquire();
  node->inner = std::move(inner);
  return std::unique_ptr<ScanStream>(new Scan(*this, node));
}

Result<std::unique_ptr<ApplyLogStream>> InProcessDataComponent::OpenApplyLog(const Sender& sender,
                                                                             ApplyLogListener* listener,
                                                                             Deadline deadline) {
  CallDrain::Call call(calls_inside_);
  if (!call.entered()) return Dead();
  ApplyNode* node = apply_logs_->Acquire();
  node->Arm(listener);
  auto inner = component_->OpenApplyLog(sender, node, deadline);
  if (!inner.ok()) {
    NodeList<ApplyNode>::Free(node);
    return inner.status();
  }
  node->inner = std::move(inner).value();
  return std::unique_ptr<ApplyLogStream>(new ApplyLog(*this, node));
}

Result<std::vector<std::string>> InProcessDataComponent::Partition(const Sender& sender, TableId table, uint32_t n,
                                                                   Deadline deadline) {
  CallDrain::Call call(calls_inside_);
  if (!call.entered()) return Dead();
  return component_->Partition(sender, table, n, deadline);
}

Result<std::vector<TableInfo>> InProcessDataComponent::Tables(const Sender& sender, Deadline deadline) {
  CallDrain::Call call(calls_inside_);
  if (!call.entered()) return Dead();
  return component_->Tables(sender, deadline);
}

Result<std::vector<CounterValue>> InProcessDataComponent::Counters(Deadline deadline) {
  CallDrain::Call call(calls_inside_);
  if (!call.entered()) return Dead();
  return component_->Counters(deadline);
}

}  // namespace deut
