#include "integration/harness/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"

namespace deut::testing {

std::string EndOfLog(const std::string& path, size_t bytes) {
  const std::string text = ReadWholeFile(path);
  return Concat("--- end of ", path, "\n", text.substr(text.size() - std::min(bytes, text.size())));
}

uint64_t CounterOf(const std::vector<CounterValue>& counters, std::string_view name) {
  for (const CounterValue& counter : counters) {
    if (counter.name == name) return counter.value;
  }
  return 0;
}

Cluster::Cluster(ClusterOptions options)
    : options_(std::move(options)),
      dc_port_(FreePort()),
      tc_port_(FreePort()),
      dc_port_of_tc_(dc_port_),
      tc_port_of_clients_(tc_port_) {
  if (options_.proxies) {
    dc_port_of_tc_ = FreePort();
    tc_port_of_clients_ = FreePort();
    tc_dc_ = std::make_unique<FaultProxy>(dc_port_of_tc_, dc_port_,
                                          FaultProxyOptions{.record_bytes = options_.record_bytes});
    client_tc_ = std::make_unique<FaultProxy>(tc_port_of_clients_, tc_port_, FaultProxyOptions{});
  }
  StartDc();
  StartTc();
  client_ = NewClient();
}

Cluster::~Cluster() {
  client_.reset();
  KillTc();
  KillDc();
  if (!::testing::Test::HasFailure()) return;
  std::cerr << EndOfLog(directory_.Sub("dc.log")) << EndOfLog(directory_.Sub("tc.log"));
}

std::unique_ptr<Client> Cluster::NewClient() const {
  return Client::Connect(Concat("127.0.0.1:", tc_port_of_clients_), options_.connect).value();
}

std::string Cluster::tc_address() const { return Concat("127.0.0.1:", tc_port_); }
std::string Cluster::dc_address() const { return Concat("127.0.0.1:", dc_port_); }

std::unique_ptr<Process> Cluster::Start(const DaemonSetting& setting, const char* variable, const char* name,
                                        std::vector<std::string> flags) {
  std::vector<std::string> command = setting.prefix;
  command.push_back(ProgramAt(variable));
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), setting.flags.begin(), setting.flags.end());
  return std::make_unique<Process>(std::move(command), directory_.Sub(Concat(name, ".log")));
}

void Cluster::StartDc() {
  DEUT_CHECK(dc_ == nullptr);
  dc_ =
      Start(options_.dc, "DCD", "dc", {Concat("--listen=", dc_address()), Concat("--data_dir=", directory_.Sub("dc"))});
}

void Cluster::StartTc() {
  DEUT_CHECK(tc_ == nullptr);
  tc_ = Start(options_.tc, "TCD", "tc",
              {Concat("--listen=", tc_address()), Concat("--dc=127.0.0.1:", dc_port_of_tc_),
               Concat("--data_dir=", options_.tc_folder.empty() ? directory_.Sub("tc") : options_.tc_folder)});
}

Status Cluster::AwaitServing(Duration limit) {
  Runtime& runtime = RealRuntime();
  const Deadline deadline = runtime.Now() + limit;
  Status last = DEUT_ERROR(kUnavailable, "never asked");
  while (runtime.Now() < deadline) {
    for (Process* process : {dc_.get(), tc_.get()}) {
      if (process != nullptr && !process->Running()) {
        return DEUT_ERROR(kWrongState, "a daemon has ended by itself: ", EndOfLog(process->log()));
      }
    }
    const Result<ServiceStatus> status = client_->GetStatus({.timeout = seconds(1)});
    last = status.status();
    if (status.ok()) {
      const uint64_t serving = CounterOf(status->tc, "serving"), open = CounterOf(status->tc, "dc.gate_open");
      // The gate of a killed DC stays open until the TC has noticed, so the incarnations are compared, too.
      const uint64_t seen = CounterOf(status->tc, "dc.incarnation_id"), lives = CounterOf(status->dc, "incarnation_id");
      if (serving == 1 && open == 1 && seen == lives) return Status::Ok();
      last = DEUT_ERROR(kUnavailable, "serving ", serving, ", dc.gate_open ", open, ", DC incarnation ", seen,
                        " where ", lives, " lives");
    }
    runtime.SleepUntil(runtime.Now() + milliseconds(10));
  }
  return DEUT_ERROR(kDeadlineExceeded, "does not serve after ", duration_cast<milliseconds>(limit).count(),
                    " ms: ", last.ToString());
}

}  // namespace deut::testing
