#include "integration/power/checkpointing_dc.h"

#include <functional>
#include <utility>

#include "common/runtime/random.h"

namespace deut::power {
namespace {

class NoListener final : public ApplyLogListener {
 public:
  void OnAck(const ApplyAck&) override {}
  void OnClosed(const Status&) override {}
};

// Passes on the server's acknowledgements, with the stable position added.
class StableListener final : public ApplyLogListener {
 public:
  StableListener(KeptPages& pages, ApplyLogListener* listener) : pages_(pages), listener_(listener) {}
  void OnAck(const ApplyAck& ack) override {
    ApplyAck with_stable = ack;
    with_stable.stable = pages_.stable();
    listener_->OnAck(with_stable);
  }
  void OnClosed(const Status& status) override { listener_->OnClosed(status); }

 private:
  KeptPages& pages_;
  ApplyLogListener* const listener_;
};

class KeepingStream final : public ApplyLogStream {
 public:
  KeepingStream(std::function<void(const LogBatch&)> applied, std::unique_ptr<StableListener> listener)
      : applied_(std::move(applied)), listener_(std::move(listener)) {}
  StableListener* listener() { return listener_.get(); }
  void SetStream(std::unique_ptr<ApplyLogStream> stream) { stream_ = std::move(stream); }

  Status Send(const LogBatch& batch, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(stream_->Send(batch, deadline));
    applied_(batch);
    return Status::Ok();
  }

 private:
  const std::function<void(const LogBatch&)> applied_;
  const std::unique_ptr<StableListener> listener_;  // outlives the stream
  std::unique_ptr<ApplyLogStream> stream_;
};

}  // namespace

KeptPages::KeptPages(Runtime& runtime) : identity_(NewMemoryStorage(runtime)), mutex_(runtime) {}

void KeptPages::LosePower(uint64_t seed) {
  const MutexLock lock(mutex_);
  Random random(seed);
  const size_t keep = stable_batches_ + random.Below(batches_.size() - stable_batches_ + 1);
  batches_.resize(keep);
  stable_batches_ = keep;
  since_checkpoint_ = 0;
}

Position KeptPages::stable() const {
  const MutexLock lock(mutex_);
  return stable_batches_ == 0 ? Position{} : batches_[stable_batches_ - 1].to;
}

KeptPages::Backup KeptPages::TakeBackup() const {
  const MutexLock lock(mutex_);
  return {.batches = batches_, .stable_batches = stable_batches_};
}

void KeptPages::Restore(Backup backup) {
  const MutexLock lock(mutex_);
  batches_ = std::move(backup.batches);
  stable_batches_ = backup.stable_batches;
  since_checkpoint_ = 0;
}

void KeptPages::Applied(const LogBatch& batch) {
  const MutexLock lock(mutex_);
  if (!batches_.empty() && batch.to <= batches_.back().to) return;  // sent again
  batches_.push_back(batch);
  if (++since_checkpoint_ < kBatchesPerCheckpoint) return;
  since_checkpoint_ = 0;
  stable_batches_ = batches_.size();
}

std::vector<LogBatch> KeptPages::batches() const {
  const MutexLock lock(mutex_);
  return batches_;
}

Result<std::unique_ptr<DataComponent>> CheckpointingDc::Open(KeptPages& pages, Runtime& runtime) {
  dc::DataComponentOptions options;
  options.directory = "/dc";
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<dc::DataComponentServer> server,
                        dc::DataComponentServer::Open(options, *pages.identity_, runtime));
  std::unique_ptr<CheckpointingDc> dc(new CheckpointingDc(pages, std::move(server)));
  DEUT_RETURN_IF_ERROR(dc->Replay());
  return std::unique_ptr<DataComponent>(std::move(dc));
}

Status CheckpointingDc::Replay() {
  HelloRequest hello;
  {
    const MutexLock lock(pages_.mutex_);
    hello = pages_.last_hello_;
  }
  if (hello.epoch.value == 0) return Status::Ok();
  hello.decided_on.reset();  // it refers to the state before the loss of power
  DEUT_RETURN_IF_ERROR(server_->Hello(hello, kNoDeadline).status());
  NoListener listener;
  const Sender sender{hello.tc, hello.epoch, hello.nonce, server_->incarnation()};
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<ApplyLogStream> stream,
                        server_->OpenApplyLog(sender, &listener, kNoDeadline));
  for (const LogBatch& batch : pages_.batches()) DEUT_RETURN_IF_ERROR(stream->Send(batch, kNoDeadline));
  return Status::Ok();
}

Result<HelloAnswer> CheckpointingDc::Hello(const HelloRequest& request, Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(HelloAnswer answer, server_->Hello(request, deadline));
  const MutexLock lock(pages_.mutex_);
  if (!request.inquiry) pages_.last_hello_ = request;
  if (pages_.stable_batches_ > 0) answer.stable = pages_.batches_[pages_.stable_batches_ - 1].to;
  return answer;
}

Result<std::unique_ptr<ApplyLogStream>> CheckpointingDc::OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                                      Deadline deadline) {
  auto keeping = std::make_unique<KeepingStream>([this](const LogBatch& batch) { pages_.Applied(batch); },
                                                 std::make_unique<StableListener>(pages_, listener));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<ApplyLogStream> stream,
                        server_->OpenApplyLog(sender, keeping->listener(), deadline));
  keeping->SetStream(std::move(stream));
  return std::unique_ptr<ApplyLogStream>(std::move(keeping));
}

}  // namespace deut::power
