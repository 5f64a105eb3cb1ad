#include "integration/product/cli/target.h"

#include <utility>

#include "dc/server/dc_flags.h"
#include "tc/server/tc_flags.h"

namespace deut::cli {

void AddTargetFlags(FlagSet* flags, TargetOptions* options) {
  flags->Add("target", &options->target, "the store: HOST:PORT or unix:/PATH of a tcd; or: embedded");
  TlsOptions& tls = options->connect.tls;
  flags->Add("tls_cert", &tls.cert_file, "this program's certificate, PEM");
  flags->Add("tls_key", &tls.key_file, "its private key, PEM");
  flags->Add("tls_ca", &tls.ca_file, "the authority of the tcd's certificate, PEM");
  flags->Add("tls_allow", &tls.allow, "names of which the tcd's certificate must have one");
  flags->Add("insecure", &options->connect.insecure, "allow a target on another machine without TLS");
  flags->Add("connections", &options->connect.connections, "network connections, shared by all threads", 1, 256);

  EmbeddedOptions& embedded = options->embedded;
  flags->Add("data_dir", &embedded.data_dir, "embedded: folder of the store");
  flags->AddEnum("io", &embedded.io, {{"auto", IoKind::kAuto}, {"uring", IoKind::kUring}, {"posix", IoKind::kPosix}},
                 "embedded: how files are read and written");
  flags->AddBytes("memory", &embedded.memory_bytes,
                  "embedded: resident memory of this process, all parts together, which share it by need; 0 = no limit",
                  "half of the machine's memory, or of the control group's limit");
  tc::AddTcFlags(flags, &embedded.tc);
  dc::AddDcFlags(flags, &embedded.dc);
}

Result<std::unique_ptr<Target>> Target::Open(const TargetOptions& options) {
  std::unique_ptr<Target> target(new Target());
  if (options.target == "embedded") {
    EmbeddedOptions embedded = options.embedded;
    embedded.client = options.connect.client;
    DEUT_ASSIGN_OR_RETURN(target->embedded_, Embedded::Open(embedded));
    target->client_ = &target->embedded_->client();
    return target;
  }
  if (!options.embedded.data_dir.empty())
    return DEUT_ERROR(kInvalidArgument, "--data_dir is for --target=embedded only");
  DEUT_ASSIGN_OR_RETURN(target->connected_, Client::Connect(options.target, options.connect));
  target->client_ = target->connected_.get();
  return target;
}

}  // namespace deut::cli
