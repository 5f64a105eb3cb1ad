#include "dc/server/starting_data_component.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace deut::dc {
namespace {

// A Hello is answered this long before its deadline, so that its caller gets the reason.
constexpr Duration kBeforeDeadline = std::chrono::milliseconds(200);
constexpr Duration kMaxHelloWait = std::chrono::seconds(10);

}  // namespace

StartingDataComponent::StartingDataComponent(const DataComponentOptions& options, Runtime& runtime,
                                             ClaimedDirectory claimed, std::function<void()> on_failed)
    : runtime_(runtime), number_(claimed.state.number), incarnation_(claimed.state.incarnation) {
  auto shared = std::make_shared<ClaimedDirectory>(std::move(claimed));
  thread_ = runtime.StartThread("dc-start", [this, options, shared, on_failed = std::move(on_failed)] {
    auto server = DataComponentServer::Recover(options, runtime_, std::move(*shared), &progress_);
    if (server.ok()) {
      owned_ = std::move(*server);
      // serving_ is set before over_ is signalled: a thread that wakes from over_ finds the server or the failure.
      serving_.store(owned_.get(), std::memory_order_release);
    } else {
      failure_ = server.status();
    }
    over_.Signal(runtime_);
    if (!failure_.ok()) on_failed();
  });
}

StartingDataComponent::~StartingDataComponent() {
  GiveUp();
  thread_.reset();
  DEUT_CHECK(over_.IsSet());
}

Status StartingDataComponent::Unavailable() const {
  if (over_.IsSet() && !failure_.ok())
    return DEUT_ERROR(kUnavailable, "the data component cannot start: ", failure_.message());
  return DEUT_ERROR(kUnavailable, "the data component is ", progress_.Text());
}

Status StartingDataComponent::failure() const { return over_.IsSet() ? failure_ : Status::Ok(); }

Status StartingDataComponent::WaitServing(Deadline deadline) {
  if (over_.Wait(runtime_, deadline) && server() == nullptr) {
    DEUT_CHECK(!failure_.ok());
    // Slows down a caller that polls a failed component.
    runtime_.SleepUntil(std::min<Deadline>(deadline, runtime_.Now() + kBeforeDeadline));
  }
  return server() != nullptr ? Status::Ok() : Unavailable();
}

Status StartingDataComponent::Health(Deadline deadline) {
  DEUT_RETURN_IF_ERROR(WaitServing(deadline));
  return server()->CheckDisk();
}

Result<HelloAnswer> StartingDataComponent::Hello(const HelloRequest& request, Deadline deadline) {
  if (server() == nullptr) {
    DEUT_RETURN_IF_ERROR(WaitServing(std::min<Deadline>(deadline - kBeforeDeadline, runtime_.Now() + kMaxHelloWait)));
  }
  return server()->Hello(request, deadline);
}

void StartingDataComponent::Submit(absl::Span<DataRequest* const> requests) {
  if (DataComponentServer* const to = server()) return to->Submit(requests);
  for (DataRequest* request : requests) {
    request->answer.Clear();
    request->complete = false;
    request->answered_by = incarnation_;
    request->status = Unavailable();
    request->Finish(runtime_);
  }
}

void StartingDataComponent::Abandon(DataRequest* request) {
  if (DataComponentServer* const to = server()) to->Abandon(request);
}

Result<std::unique_ptr<ScanStream>> StartingDataComponent::OpenScan(const Sender& sender, const ScanSpec& spec,
                                                                    Deadline deadline) {
  if (DataComponentServer* const to = server()) return to->OpenScan(sender, spec, deadline);
  return Unavailable();
}

Result<std::unique_ptr<ApplyLogStream>> StartingDataComponent::OpenApplyLog(const Sender& sender,
                                                                            ApplyLogListener* listener,
                                                                            Deadline deadline) {
  if (DataComponentServer* const to = server()) return to->OpenApplyLog(sender, listener, deadline);
  return Unavailable();
}

Result<std::vector<std::string>> StartingDataComponent::Partition(const Sender& sender, TableId table, uint32_t n,
                                                                  Deadline deadline) {
  if (DataComponentServer* const to = server()) return to->Partition(sender, table, n, deadline);
  return Unavailable();
}

Result<std::vector<TableInfo>> StartingDataComponent::Tables(const Sender& sender, Deadline deadline) {
  if (DataComponentServer* const to = server()) return to->Tables(sender, deadline);
  return Unavailable();
}

Result<std::vector<CounterValue>> StartingDataComponent::Counters(Deadline deadline) {
  if (DataComponentServer* const to = server()) return to->Counters(deadline);
  return std::vector<CounterValue>{{"incarnation", number_.value},
                                   {"incarnation_id", incarnation_.value},
                                   {"recovering", 1},
                                   {"recovery_checkpoint", progress_.checkpoint},
                                   {"recovery_segments", progress_.segments},
                                   {"recovery_segments_checked", progress_.segments_checked},
                                   {"recovery_inner_pages", progress_.inner_pages},
                                   {"recovery_inner_pages_loaded", progress_.inner_pages_loaded}};
}

}  // namespace deut::dc
