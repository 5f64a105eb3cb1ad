// dcd: the data component as a daemon. The only place where its flags are read.
#include <memory>
#include <string>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "dc/server/data_component_server.h"
#include "dc/server/dc_flags.h"
#include "protocol/daemon.h"
#include "protocol/grpc_data_component_service.h"

namespace deut::dc {
namespace {

DaemonOptions Defaults() {
  DaemonOptions options;
  options.listen = "127.0.0.1:7702";
  options.data_dir = "dc-data";
  return options;
}

struct Options {
  DaemonOptions daemon = Defaults();
  DataComponentOptions component;
};

Status Serve(Options& options, DaemonContext& context) {
  options.component.directory = options.daemon.data_dir;
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<DataComponentServer> component,
                        DataComponentServer::Open(options.component, context.storage(), context.runtime()));
  GrpcDataComponentService service(context.runtime(), *component, RpcServiceOptions{});
  return context.Serve(
      {service.service()}, [](Deadline) { return Status::Ok(); },
      Concat("data component ", component->id().value, ", incarnation ", component->incarnation().value));
}

int Main(int argc, char** argv) {
  Options options;
  FlagSet flags(
      "dcd",
      "The data component: tables of ordered records in a latch-free Bw-tree, in memory and on disk; serves one tcd.");
  AddDaemonFlags(&flags, &options.daemon);
  AddDcFlags(&flags, &options.component);
  return RunDaemon("dcd", flags, argc, argv, options.daemon,
                   [&](DaemonContext& context) { return Serve(options, context); });
}

}  // namespace
}  // namespace deut::dc

int main(int argc, char** argv) { return deut::dc::Main(argc, argv); }
