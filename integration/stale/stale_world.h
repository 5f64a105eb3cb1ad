// StaleWorld: a cluster of real daemons whose folders are replaced by other copies of themselves, a journal of what was acknowledged, and the
// oracle: the store is right (everything acknowledged is there, nothing older is read), or it is refused with a sentence that names what and why,
// again at every start, with nothing changed on disk.
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

// Every file below a folder, by its path in it, with its bytes; without lock files, which hold nothing but the number of a process.
using FolderBytes = std::map<std::string, std::string>;
FolderBytes BytesOf(const std::string& folder);

// Copies a folder file by file, also while a process writes there: then files of different moments lie side by side. Files that vanish meanwhile
// are left out.
void CopyFolder(const std::string& from, const std::string& to);

// What was acknowledged.
struct Journal {
  std::map<std::string, std::string> values;
  int64_t counted = 0;
  uint64_t written = 0;
};

struct Verdict {
  enum class Kind { kRight, kRefused, kWrong } kind = Kind::kWrong;
  std::string why;  // the refusal's sentence, or what is wrong
};

class StaleWorld {
 public:
  // `proxies`: TC and DC speak through a proxy, so that the TC can be led to a twin of the DC.
  explicit StaleWorld(bool proxies = false);

  // REQUIRES for all that write: both daemons run. Transactions of one key each and of a counter, all acknowledged; `label` is in the values.
  Status Create();
  Status Write(const std::string& label, int transactions);
  // About so much log that is not in the journal, so that there is something to catch up with.
  Status WriteFiller(int mebibytes);
  // The same in large values, which take little time: for segments of the log.
  Status WriteLarge(int mebibytes);
  // From now on an open transaction that has written keeps later commits from the DC, until LetGo.
  Status HoldBack();
  void LetGo() { held_.reset(); }
  // Starts the DC, and reads and adds all the time until it serves, as clients do that live on. The first stale answer, or nothing.
  std::string StartDcUnderReaders();
  // The DC has a checkpoint that contains everything written until now.
  Status AwaitCheckpoint();

  // A folder's copy under `name`, which Replace puts in its place. REQUIRES of Replace: the component does not run.
  void Copy(Component component, const std::string& name);
  void Replace(Component component, const std::string& name);
  std::string FolderOf(Component component) const;
  std::string CopyAt(Component component, const std::string& name) const;

  // A second DC process, which runs from the copy `name` of the DC's folder beside the one that there is. REQUIRES: made with proxies.
  void StartTwin(const std::string& name);
  // Ends the connections between TC and DC; the next ones go to the twin, or to the DC again.
  void LeadToTwin(bool to_twin);

  void Kill(Component component);
  void Start(Component component);

  // REQUIRES: both were started, or have ended by themselves.
  Verdict Judge();
  // The same after a refusal: started again, it is refused again.
  Verdict JudgeAgain();

  testing::Cluster& cluster() { return cluster_; }

  Journal journal() const { return journal_; }
  void SetJournal(Journal journal) { journal_ = std::move(journal); }

 private:
  // Empty: every acknowledged value is read, from the DC as well as from the TC's memory.
  std::string FindWrong();
  std::optional<std::string> Refusal();

  testing::Cluster cluster_;
  std::unique_ptr<testing::Process> twin_;
  uint16_t twin_port_ = 0;
  TableId table_;
  Journal journal_;
  std::map<Component, uint64_t> said_before_;  // bytes of the log when it was started last
  std::optional<Transaction> held_;            // ends before the cluster's client
};

}  // namespace deut::stale

#endif  // INTEGRATION_STALE_STALE_WORLD_H_
