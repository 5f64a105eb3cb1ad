// LinkHarness: a redo log on a disk in memory, a fake transaction table and a fake DC around a real DcLink, for
// tests. The test starts and ends the TC (log and link) and the DC's incarnations.
// Thread-safety: Commit and Read from any thread; the rest by the test's thread. Ownership: owns all of them.
#ifndef TC_DC_LINK_LINK_HARNESS_H_
#define TC_DC_LINK_LINK_HARNESS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"
#include "tc/dc_link/dc_link.h"
#include "tc/dc_link/fake_data_component.h"
#include "tc/dc_link/fake_transactions.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class LinkHarness {
 public:
  static constexpr TableId kTable{7};

  LinkHarness();
  ~LinkHarness();

  // --- The TC. StartTc opens the log and starts the link; it does not wait for the DC.
  void StartTc();
  void StopTc();  // clean
  // As a TC does it: the log is not written to before the DC was asked. Records that are appended before WaitCaughtUp
  // are lost with the start.
  bool look_first = false;
  std::function<void()> before_begin;  // called before the log begins, on the link's thread
  void CrashTc();                      // the disk drops everything that is not durable
  Status WaitCaughtUp() { return link->WaitCaughtUp(Soon()); }

  // Runs a transaction with one timestamp, drawn here unless given, that puts key = value for each pair. Returns the
  // position of its end.
  Position Commit(const std::vector<std::pair<std::string, std::string>>& puts,
                  std::optional<Timestamp> timestamp = std::nullopt);
  // As Commit, and waits until it is applied.
  void CommitAndApply(const std::vector<std::pair<std::string, std::string>>& puts);
  bool WaitApplied(Position position);

  // A point read through the link. Returns the value, or nothing.
  Result<std::optional<std::string>> Read(const std::string& key, Deadline deadline);
  Result<std::optional<std::string>> Read(const std::string& key) { return Read(key, Soon()); }

  static Deadline Soon() { return RealRuntime().Now() + seconds(20); }
  static Deadline After(Duration duration) { return RealRuntime().Now() + duration; }

  // Fatal errors that the link has reported, in order.
  std::vector<Status> fatal();
  bool WaitFatal();

  FaultyDisk disk;
  std::unique_ptr<Storage> storage;
  RedoLogOptions log_options;
  DcLinkOptions link_options;
  RecoveredLog recovered;
  std::unique_ptr<RedoLog> log;
  FakeTransactions transactions{Timestamp{1}};
  FakeDataComponent dc{RealRuntime(), DcId{3}};
  std::unique_ptr<DcLink> link;

 private:
  Mutex mutex_{RealRuntime()};
  std::vector<Status> fatal_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_LINK_HARNESS_H_
