#include "integration/bugs/store.h"

#include <algorithm>
#include <utility>

#include "dc/server/data_component_server.h"

namespace deut::bugs {
namespace {

constexpr Duration kOpenTimeout = seconds(60);
constexpr Duration kDropTimeout = milliseconds(200);
constexpr Duration kLookAgain = milliseconds(10);

}  // namespace

Result<std::unique_ptr<DataComponent>> OpenDc(const Environment& environment, Storage& storage, power::KeptPages* pages,
                                              std::function<void(const Status&)> on_failure) {
  if (pages != nullptr) return power::CheckpointingDc::Open(*pages, RealRuntime());
  dc::DataComponentOptions options = environment.dc;
  options.records.on_failure = std::move(on_failure);
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<DataComponent> dc,
                        dc::DataComponentServer::Open(options, storage, RealRuntime()));
  return dc;
}

Result<std::unique_ptr<Store>> Store::Open(const Environment& environment, Storage& storage, power::KeptPages* pages,
                                           absl::FunctionRef<bool()> powerless) {
  auto failure = std::make_shared<Failure>();
  auto dc = std::make_unique<InProcessDataComponent>(RealRuntime(), [environment, &storage, pages, failure] {
    return OpenDc(environment, storage, pages, [failure](const Status& status) { failure->Note(status); });
  });
  // The DC starts before the TC exists: its first failure is in `failure`, which the store shares.
  DEUT_RETURN_IF_ERROR(dc->Start());
  auto link = std::make_unique<Link>(*dc);
  link->SetCorruption(environment.corrupt_one_in);
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Open(environment, storage, *link, powerless, failure));
  store->link_ = std::move(link);
  store->dc_ = std::move(dc);
  return store;
}

Result<std::unique_ptr<Store>> Store::Open(const Environment& environment, Storage& storage, DataComponent& dc,
                                           absl::FunctionRef<bool()> powerless) {
  return Open(environment, storage, dc, powerless, std::make_shared<Failure>());
}

Result<std::unique_ptr<Store>> Store::Open(const Environment& environment, Storage& storage, DataComponent& dc,
                                           absl::FunctionRef<bool()> powerless, std::shared_ptr<Failure> failure) {
  Runtime& runtime = RealRuntime();
  std::unique_ptr<Store> store(new Store(std::move(failure)));
  tc::TransactionComponentOptions options = environment.tc;
  options.log.on_failure = [failure = store->failure_](const Status& status) { failure->Note(status); };
  options.on_refused = options.log.on_failure;
  DEUT_ASSIGN_OR_RETURN(store->tc_, tc::TransactionComponent::Open(options, runtime, storage, dc));
  const Deadline deadline = runtime.Now() + kOpenTimeout;
  // Waits in short steps, to notice a failure or a loss of power long before the deadline.
  for (;;) {
    const Status serving = store->tc_->WaitServing(std::min<Deadline>(deadline, runtime.Now() + kLookAgain));
    DEUT_RETURN_IF_ERROR(store->failure());
    if (serving.ok()) break;
    if (powerless()) return DEUT_ERROR(kIoError, "power was lost");
    if (serving != ErrorCode::kUnavailable || runtime.Now() >= deadline) return serving;
  }
  store->severable_ = std::make_unique<SeverableService>(*store->tc_);
  store->client_ = Client::FromService(store->severable_.get(), {});
  store->neighbour_ = Client::FromService(store->tc_.get(), {});
  return store;
}

Store::~Store() {
  // The reverse order of use: the TC sends to the DC through the link until Stop returns.
  client_.reset();
  neighbour_.reset();
  if (tc_) tc_->Stop();
  tc_.reset();
  link_.reset();
  dc_.reset();
}

Status Store::RestartDc(absl::FunctionRef<void()> dead) {
  dc_->Kill();
  dead();
  return dc_->Start();
}

Result<TableId> Store::CreateTable(std::string_view name, Duration patience) {
  Runtime& runtime = RealRuntime();
  Result<TableId> table = client_->CreateTable(name);
  for (const Deadline end = runtime.Now() + patience;
       table.status() == ErrorCode::kResourceExhausted && runtime.Now() < end;) {
    runtime.SleepUntil(runtime.Now() + milliseconds(table.status().retry_after_ms()));
    table = client_->CreateTable(name);
  }
  return table;
}

Status Store::DropCaches() { return tc_->DropCaches(RealRuntime().Now() + kDropTimeout); }

void Store::Failure::Note(const Status& status) {
  const MutexLock lock(mutex_);
  if (status_.ok()) status_ = status;
}

Status Store::Failure::status() {
  const MutexLock lock(mutex_);
  return status_;
}

}  // namespace deut::bugs
