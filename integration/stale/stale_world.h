// StaleWorld: a cluster of real daemons whose folders are replaced by other copies, a journal of the acknowledged
// writes, and the oracle. The oracle accepts two results. Either the store is right: everything acknowledged is
// there, and no read is older. Or it refuses at every start, with a message that names the cause, and changes nothing
// on disk.
// Thread-safety: one thread.
#ifndef INTEGRATION_STALE_STALE_WORLD_H_
#define INTEGRATION_STALE_STALE_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/harness/cluster.h"
#include "integration/harness/process.h"
#include "tc/client/transaction.h"

namespace deut::stale {

enum class Component { kDc, kTc };

// Every file below a folder, by its path in it, with its bytes, but for lock files, which hold nothing but the number of a process; and every folder
// in it, with a slash at the end. A folder that is not there has none.
using FolderBytes = std::map<std::string, std::string>;
FolderBytes BytesOf(const std::string& folder);

// Copies a folder file by file, also while a process writes there; the copy then has files of different moments.
// Files that vanish meanwhile are left out.
void CopyFolder(const std::string& from, const std::string& to);

// The acknowledged writes.
struct Journal {
  std::map<std::string, std::string> values;
  int64_t counted = 0;
  uint64_t written = 0;
};

struct Verdict {
  enum class Kind { kRight, kRefused, kWrong } kind = Kind::kWrong;
  std::string why;  // the refusal's message, or the error
};

class StaleWorld {
 public:
  // `proxies`: TC and DC talk through a proxy, so that the TC can be connected to a twin of the DC.
  explicit StaleWorld(bool proxies = false);

  // REQUIRES for all methods that write: both daemons run. They run transactions of one key each and of a counter,
  // all acknowledged; the values contain `label`.
  Status Create();
  Status Write(const std::string& label, int transactions);
  // Writes about this much log that is not in the journal, so that the DC has something to catch up with.
  Status WriteFiller(int mebibytes);
  // The same in large values, which take little time: fills segments of the log.
  Status WriteLarge(int mebibytes);
  // From now on, an open transaction that has written keeps later commits from the DC, until UnblockShipping.
  Status BlockShipping();
  void UnblockShipping() { held_.reset(); }
  // Starts the DC. Meanwhile reads and adds continuously until it serves, as clients that keep running do. Returns
  // the first stale answer, or "".
  std::string StartDcUnderReaders();
  // Waits until the DC has a checkpoint that contains everything written until now.
  Status AwaitCheckpoint();

  // Waits until the DC's state file has the LSN up to which the TC's log is durable now (rule X4).
  Status AwaitDurableLsnAtDc();

  // Copy copies a folder to `name`; Replace puts that copy in the folder's place. REQUIRES for Replace: the component
  // does not run.
  void Copy(Component component, const std::string& name);
  void Replace(Component component, const std::string& name);
  std::string FolderOf(Component component) const;
  std::string CopyAt(Component component, const std::string& name) const;

  // Starts a second DC process, which runs from the copy `name` of the DC's folder beside the first one. REQUIRES:
  // made with proxies.
  void StartTwin(const std::string& name);
  // Ends the connections between TC and DC. The next ones go to the twin, or to the DC again.
  void RouteToTwin(bool to_twin);

  void Kill(Component component);
  void Start(Component component);

  // REQUIRES: both were started, or have ended by themselves.
  Verdict Judge();
  // The same after a refusal: starts the refused component again and judges again.
  Verdict JudgeAgain();

  testing::Cluster& cluster() { return cluster_; }

  Journal journal() const { return journal_; }
  void SetJournal(Journal journal) { journal_ = std::move(journal); }

 private:
  // Returns "" if every acknowledged value is read, from the DC as well as from the TC's memory.
  std::string FindWrong();
  std::optional<std::string> Refusal();

  testing::Cluster cluster_;
  std::unique_ptr<testing::Process> twin_;
  uint16_t twin_port_ = 0;
  TableId table_;
  Journal journal_;
  std::map<Component, uint64_t> said_before_;  // size of the component's log file when the component was last started
  std::optional<Transaction> held_;            // declared last, so that it ends before the cluster's client
};

}  // namespace deut::stale

#endif  // INTEGRATION_STALE_STALE_WORLD_H_
