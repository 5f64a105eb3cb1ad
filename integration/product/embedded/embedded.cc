#include "integration/product/embedded/embedded.h"

#include <utility>

#include "common/base/concat.h"

namespace deut {

Result<std::unique_ptr<Embedded>> Embedded::Open(const EmbeddedOptions& options) {
  Runtime& runtime = RealRuntime();
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage, NewSystemStorage(options.io, runtime));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Embedded> embedded, Open(options, runtime, *storage));
  embedded->owned_storage_ = std::move(storage);
  return embedded;
}

Result<std::unique_ptr<Embedded>> Embedded::Open(const EmbeddedOptions& options, Runtime& runtime, Storage& storage) {
  if (options.data_dir.empty())
    return DEUT_ERROR(kInvalidArgument, "an embedded store needs a data directory (--data_dir)");
  DEUT_RETURN_IF_ERROR(ProcessBudget::Check(options.memory_bytes));
  std::unique_ptr<Embedded> embedded(new Embedded(runtime));
  embedded->memory_ = ProcessBudget::Open(runtime, options.memory_bytes);
  dc::DataComponentOptions dc_options = options.dc;
  dc_options.records.process_budget = embedded->memory_.get();
  dc_options.directory = Concat(options.data_dir, "/dc");
  embedded->dc_ = std::make_unique<InProcessDataComponent>(
      runtime, [dc_options, &storage, &runtime]() -> Result<std::unique_ptr<DataComponent>> {
        DEUT_ASSIGN_OR_RETURN(std::unique_ptr<DataComponent> dc,
                              dc::DataComponentServer::Open(dc_options, storage, runtime));
        return dc;
      });
  DEUT_RETURN_IF_ERROR(embedded->dc_->Start());
  tc::TransactionComponentOptions tc_options = options.tc;
  tc_options.process_budget = embedded->memory_.get();
  tc_options.log.directory = Concat(options.data_dir, "/tc");
  tc_options.dc_link.dc_name = "the embedded data component";
  DEUT_ASSIGN_OR_RETURN(embedded->tc_, tc::TransactionComponent::Open(tc_options, runtime, storage, *embedded->dc_));
  DEUT_RETURN_IF_ERROR(embedded->tc_->WaitServing(runtime.Now() + options.open_timeout));
  embedded->client_ = Client::FromService(embedded->tc_.get(), options.client);
  return embedded;
}

Embedded::~Embedded() {
  // The destructor works on a thread of its own: when the store is a static object, the thread that destroys it has
  // lost its thread-local objects.
  const std::unique_ptr<Thread> end = runtime_.StartThread("embedded-end", [this] {
    client_.reset();
    if (tc_) tc_->Stop();
    tc_.reset();
    dc_.reset();
    owned_storage_.reset();
  });
  end->Join();
}

Status Embedded::RestartDc() {
  dc_->Kill();
  return dc_->Start();
}

}  // namespace deut
