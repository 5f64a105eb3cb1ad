// Cluster: a real tcd and a real dcd, and a client. Each daemon is a process with a folder and a port of its own, and
// can be killed and started again. Folders are under TEST_TMPDIR, so they are on a disk where Bazel's output is.
//
//   Cluster cluster({});                    // starts both, does not wait
//   ASSERT_TRUE(cluster.AwaitServing().ok());
//   cluster.KillDc();  cluster.StartDc();
//
// With proxies, all traffic goes through them: client_tc(), tc_dc().
//
// The test target names the programs: data = ["//tc:tcd", "//dc:dcd"], env TCD and DCD.
// If the test has failed, the destructor prints the end of both logs.
// Thread-safety: any thread may use the client. Only the thread that made the cluster calls the rest, and it must
// outlive the cluster (Process).
#ifndef INTEGRATION_HARNESS_CLUSTER_H_
#define INTEGRATION_HARNESS_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/fault_proxy.h"
#include "integration/harness/ports.h"
#include "integration/harness/process.h"
#include "tc/client/client.h"
#include "tc/client/connect.h"

namespace deut::testing {

// Returns the last `bytes` of a log, with a headline.
std::string EndOfLog(const std::string& path, size_t bytes = 4000);

struct DaemonSetting {
  std::vector<std::string> prefix = {};  // words before the program, such as "ip netns exec NAME"
  std::vector<std::string> flags = {};   // in addition to --listen, --data_dir and --dc
};

struct ClusterOptions {
  // Small tables and segments, so that a start takes little time.
  DaemonSetting tc = {.flags = {"--record_buckets_log2=14", "--log_segment=16MiB", "--log_buffer=16MiB"}};
  DaemonSetting dc = {};
  ConnectOptions connect = {};
  // Puts proxies between client and TC, and between TC and DC. The latter keeps the first `record_bytes` that the TC
  // sends on each connection.
  bool proxies = false;
  uint64_t record_bytes = 4 << 20;
  // Folder of the TC's log; empty = in the cluster's own folder.
  std::string tc_folder = {};
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void StartTc();
  void StartDc();
  // kill -9. They do nothing if the daemon does not run.
  void KillTc() { tc_.reset(); }
  void KillDc() { dc_.reset(); }

  // Returns OK when the TC serves, is connected to the DC that runs now, and that DC has applied everything.
  // DEADLINE_EXCEEDED with the last answer after `limit`; WRONG_STATE with the log if a daemon has ended by itself.
  Status AwaitServing(Duration limit = seconds(60));

  Client& client() { return *client_; }
  // Returns another client with connections of its own.
  std::unique_ptr<Client> NewClient() const;
  // REQUIRES: the cluster was made with proxies.
  FaultProxy& client_tc() { return *client_tc_; }
  FaultProxy& tc_dc() { return *tc_dc_; }
  uint16_t dc_port() const { return dc_port_; }
  Process* tc() { return tc_.get(); }
  Process* dc() { return dc_.get(); }
  std::string tc_address() const;
  std::string dc_address() const;
  const TempDir& directory() const { return directory_; }

 private:
  std::unique_ptr<Process> Start(const DaemonSetting& setting, const char* variable, const char* name,
                                 std::vector<std::string> flags);

  TempDir directory_;
  const ClusterOptions options_;
  const uint16_t dc_port_, tc_port_;
  std::unique_ptr<FaultProxy> tc_dc_, client_tc_;
  uint16_t dc_port_of_tc_, tc_port_of_clients_;  // the proxies' ports, if there are proxies
  std::unique_ptr<Process> dc_, tc_;
  std::unique_ptr<Client> client_;
};

// Returns a counter of a status report; 0 if the report has none of this name.
uint64_t CounterOf(const std::vector<CounterValue>& counters, std::string_view name);

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_CLUSTER_H_
