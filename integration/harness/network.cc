#include "integration/harness/network.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "common/base/concat.h"
#include "integration/harness/process.h"

namespace deut::testing {
namespace {

Status Failed(const char* what) { return DEUT_ERROR(kUnavailable, what, ": ", std::strerror(errno)); }

Status Write(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file ? Status::Ok() : Failed(path);
}

// After this call, the process may do inside its namespaces everything that root may do.
Status EnterNamespaces() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const int users = user == 0 ? 0 : CLONE_NEWUSER;
  if (unshare(users | CLONE_NEWNET | CLONE_NEWNS) != 0) return Failed("unshare of network and mounts");
  if (users != 0) {
    DEUT_RETURN_IF_ERROR(Write("/proc/self/setgroups", "deny"));
    DEUT_RETURN_IF_ERROR(Write("/proc/self/uid_map", Concat("0 ", user, " 1")));
    DEUT_RETURN_IF_ERROR(Write("/proc/self/gid_map", Concat("0 ", group, " 1")));
  }
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Failed("mount / private");
  // ip(8) keeps the names of namespaces here, so it gets a folder of our own.
  if (mount("none", "/run", "tmpfs", 0, "mode=755") != 0) return Failed("mount of a tmpfs on /run");
  return Status::Ok();
}

constexpr const char* kSetUp = R"(
set -e
for name in client tc dc; do
  ip netns add $name
  ip -n $name link set lo up
done
join() {  # join NAME DEVICE ADDRESS NAME DEVICE ADDRESS
  ip link add $2 netns $1 type veth peer name $5 netns $4
  ip -n $1 address add $3/24 dev $2
  ip -n $4 address add $6/24 dev $5
  ip -n $1 link set $2 up
  ip -n $4 link set $5 up
}
join client veth-tc 10.77.1.1 tc veth-client 10.77.1.2
join tc veth-dc 10.77.2.1 dc veth-tc 10.77.2.2
)";

}  // namespace

Status EnterPrivateNetwork() {
  DEUT_RETURN_IF_ERROR(EnterNamespaces());
  const Ended done = RunProgram({"bash", "-c", kSetUp}, "/run/set-up.log");
  if (done.status != 0) return DEUT_ERROR(kUnavailable, "network namespaces: ", done.output);
  return Status::Ok();
}

Result<uint64_t> VethBytes(const std::string& name, const std::string& scratch_file) {
  std::vector<std::string> command = Inside(name);
  command.insert(command.end(), {"bash", "-c", "cat /sys/class/net/veth-*/statistics/[rt]x_bytes"});
  const Ended done = RunProgram(command, scratch_file);
  if (done.status != 0) return DEUT_ERROR(kUnavailable, "counters of namespace ", name, ": ", done.output);
  std::istringstream numbers(done.output);
  uint64_t sum = 0;
  for (uint64_t number = 0; numbers >> number;) sum += number;
  return sum;
}

}  // namespace deut::testing
