// dcd: the data component as a daemon. Only this file sets up its flags.
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/runtime/blocking_hook.h"
#include "dc/page_store/segment_store.h"
#include "dc/server/data_component_server.h"
#include "dc/server/dc_flags.h"
#include "dc/server/starting_data_component.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/rpc/daemon.h"

namespace deut::dc {
namespace {

// The minimum number of files that the page store keeps open for reading.
constexpr uint64_t kMinOpenFiles = 32;
// The maximum: all segments of a store that has grown to 384 GiB with the default reserve. A read of a segment that is
// not open opens its file.
constexpr uint64_t kMaxOpenFiles = 10'240;

DaemonOptions Defaults() {
  DaemonOptions options;
  options.listen = "127.0.0.1:7702";
  options.data_dir = "dc-data";
  const SegmentStoreOptions store;
  options.descriptors.min_files = store.max_unsynced_segments + kMinOpenFiles;
  options.descriptors.files_before_connections = store.max_unsynced_segments + store.max_open_files;
  options.descriptors.max_files = store.max_unsynced_segments + kMaxOpenFiles;
  options.tls.roles = {Role::kTc, Role::kAdmin};
  options.tls.files.allow_flag = "";  // dcd opens no connections
  options.streams_keep_rights = true;
  return options;
}

struct Options {
  DaemonOptions daemon = Defaults();
  DataComponentOptions component;
};

Status Serve(Options& options, DaemonContext& context) {
  options.component.directory = options.daemon.data_dir;
  options.component.records.process_budget = context.memory();
  SegmentStoreOptions& store = options.component.records.store;
  store.max_open_files = context.files() - store.max_unsynced_segments;
  DEUT_ASSIGN_OR_RETURN(ClaimedDirectory claimed,
                        DataComponentServer::Claim(options.component, context.storage(), context.runtime()));
  const std::string details =
      Concat("data component ", claimed.state.dc.value, ", incarnation ", claimed.state.number.value);
  // A wait inside the component calls the BlockingHook of the thread that serves its stream.
  BlockingHookRuntime runtime(context.runtime());
  StartingDataComponent component(options.component, runtime, std::move(claimed),
                                  /*on_failed=*/[] { kill(getpid(), SIGTERM); });
  GrpcDataComponentService service(context.runtime(), component, context.service_options());
  DEUT_RETURN_IF_ERROR(context.Serve(
      {service.service()}, [&](Deadline deadline) { return component.Health(deadline); }, details,
      /*stop=*/[&] { component.GiveUp(); }));
  const Status failure = component.failure();
  return failure == ErrorCode::kCancelled ? Status::Ok() : failure;
}

int Main(int argc, char** argv) {
  Options options;
  FlagSet flags(
      "dcd",
      "The data component: tables of ordered records in a latch-free Bw-tree, in memory and on disk; serves one tcd.");
  AddDaemonFlags(&flags, &options.daemon);
  flags.Add("tls_tc", &options.daemon.tls.tcs,
            "allowed names; the transaction component's certificate must have one of them");
  AddDcFlags(&flags, &options.component);
  return RunDaemon("dcd", flags, argc, argv, options.daemon,
                   [&](DaemonContext& context) { return Serve(options, context); });
}

}  // namespace
}  // namespace deut::dc

int main(int argc, char** argv) { return deut::dc::Main(argc, argv); }
