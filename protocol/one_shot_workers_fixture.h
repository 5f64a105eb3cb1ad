// A stream's peer without gRPC, and workers on it that run on a scripted service: what tests of OneShotWorkers have in common.
#ifndef PROTOCOL_ONE_SHOT_WORKERS_FIXTURE_H_
#define PROTOCOL_ONE_SHOT_WORKERS_FIXTURE_H_

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/before_wait.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/convert_transaction_service.h"
#include "protocol/limits.h"
#include "protocol/one_shot_workers.h"
#include "protocol/testing/scripted_transaction_service.h"

namespace deut {

// A peer: what it sends is read in order, what it is sent is kept.
class FakeStream final : public OneShotWorkers::Stream {
 public:
  explicit FakeStream(Runtime& runtime) : runtime_(runtime), mutex_(runtime) {}

  void Send(const wire::OneShotCalls& message) {
    MutexLock lock(mutex_);
    incoming_.push_back(message);
    changed_.NotifyAll(runtime_);
  }
  void HangUp() {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll(runtime_);
  }
  void TakeNothing(bool nothing) {
    MutexLock lock(mutex_);
    stuck_ = nothing;
    changed_.NotifyAll(runtime_);
  }
  // Waits until all parts of the answer to `id` are there, together.
  wire::SessionAnswer Answer(uint64_t id) {
    MutexLock lock(mutex_);
    while (finished_.count(id) == 0) changed_.Wait(mutex_);
    wire::SessionAnswer whole;
    for (const wire::SessionAnswer& part : parts_[id]) whole.MergeFrom(part);
    return whole;
  }
  size_t Parts(uint64_t id) {
    MutexLock lock(mutex_);
    return parts_[id].size();
  }
  bool Answered(uint64_t id) {
    MutexLock lock(mutex_);
    return finished_.count(id) != 0;
  }
  wire::OneShotAnswers Opened() {
    MutexLock lock(mutex_);
    while (messages_ == 0) changed_.Wait(mutex_);
    return opened_;
  }
  size_t messages() {
    MutexLock lock(mutex_);
    return messages_;
  }
  bool writing() {
    MutexLock lock(mutex_);
    return writing_;
  }
  size_t unread() {
    MutexLock lock(mutex_);
    return incoming_.size();
  }

  bool Read(wire::OneShotCalls* message) override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(reading_);
    reading_ = true;
    while (incoming_.empty() && !over_) changed_.Wait(mutex_);
    reading_ = false;
    if (incoming_.empty()) return false;
    message->Swap(&incoming_.front());
    incoming_.pop_front();
    return true;
  }
  bool Write(const wire::OneShotAnswers& message) override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(writing_);
    writing_ = true;
    while (stuck_ && !over_) changed_.Wait(mutex_);
    writing_ = false;
    if (over_) return false;
    EXPECT_LE(message.ByteSizeLong(), kMaxMessageBytes);
    if (messages_++ == 0) opened_ = message;
    for (const wire::OneShotAnswer& answer : message.answers()) {
      EXPECT_EQ(finished_.count(answer.id()), 0u) << "answered twice: " << answer.id();
      parts_[answer.id()].push_back(answer.answer());
      if (!answer.answer().more()) ++finished_[answer.id()];
    }
    changed_.NotifyAll(runtime_);
    return true;
  }

 private:
  Runtime& runtime_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<wire::OneShotCalls> incoming_ DEUT_GUARDED_BY(mutex_);
  bool over_ DEUT_GUARDED_BY(mutex_) = false;
  bool stuck_ DEUT_GUARDED_BY(mutex_) = false;
  bool reading_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  size_t messages_ DEUT_GUARDED_BY(mutex_) = 0;
  wire::OneShotAnswers opened_ DEUT_GUARDED_BY(mutex_);
  std::map<uint64_t, std::vector<wire::SessionAnswer>> parts_ DEUT_GUARDED_BY(mutex_);
  std::map<uint64_t, int> finished_ DEUT_GUARDED_BY(mutex_);
};

class OneShotWorkersTest : public ::testing::Test {
 protected:
  ~OneShotWorkersTest() override { Stop(); }

  void Start(const OneShotWorkers::Options& options = {}) {
    thread_ = runtime_.StartThread("stream", [this, options] {
      OneShotWorkers workers(runtime_, scripted_, allowance_, options, &stream_);
      ended_ = workers.Run();
    });
  }
  void Stop() {
    stream_.HangUp();
    thread_.reset();
  }
  static wire::OneShotCalls Opening() {
    wire::OneShotCalls message;
    message.mutable_open()->set_protocol_version(kProtocolVersion);
    return message;
  }
  static void Add(uint64_t id, const Operation& operation, wire::OneShotCalls* message) {
    wire::OneShotCall* call = message->add_calls();
    call->set_id(id);
    ToWire(operation, call->mutable_one_shot()->add_operations());
  }
  static Operation Put(const std::string& key, const std::string& value) {
    return {.kind = OperationKind::kPut, .table = TableId(1), .key = key, .value = value};
  }
  static Operation Get(const std::string& key) {
    return {.kind = OperationKind::kGet, .table = TableId(1), .key = key};
  }
  static Operation Scan(const std::string& low) {
    return {.kind = OperationKind::kScan, .table = TableId(1), .low = low};
  }
  void Send(uint64_t id, const Operation& operation) {
    wire::OneShotCalls message;
    Add(id, operation, &message);
    stream_.Send(message);
  }

  TellingRuntime runtime_{RealRuntime()};
  testing::ScriptedTransactionService scripted_{runtime_};
  ThreadAllowance allowance_{100};
  FakeStream stream_{runtime_};
  Status ended_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_ONE_SHOT_WORKERS_FIXTURE_H_
