// ScriptedDataComponent: a data component for tests of the code around one. It has ordered maps behind a lock, and
// hooks before every call with which a test decides the outcome. Without hooks it does what data_component.h promises,
// as simply as possible. Thread-safety: any thread may call any method; hooks are set before the first call.
#ifndef PROTOCOL_TESTING_SCRIPTED_DATA_COMPONENT_H_
#define PROTOCOL_TESTING_SCRIPTED_DATA_COMPONENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"

namespace deut::testing {

class ScriptedDataComponent : public DataComponent {
 public:
  explicit ScriptedDataComponent(Runtime& runtime, uint64_t incarnation = 1);
  // Ends held requests with UNAVAILABLE.
  ~ScriptedDataComponent() override;

  // A status that is not OK refuses the call before it has any effect.
  std::function<Status(const Sender&)> check_sender = [](const Sender&) { return Status::Ok(); };
  std::function<Status(const HelloRequest&)> check_hello = [](const HelloRequest&) { return Status::Ok(); };
  // True: the request is not answered inside Submit, but held until Release or Abandon.
  std::function<bool(const DataRequest&)> hold = [](const DataRequest&) { return false; };
  // Runs first in Send of log streams and Next of scans. It waits, up to the deadline, as if for a window.
  std::function<Status(Deadline)> await_window = [](Deadline) { return Status::Ok(); };
  // Runs in Send before the batch is applied.
  std::function<Status(const LogBatch&)> on_batch = [](const LogBatch&) { return Status::Ok(); };

  void Put(TableId table, const std::string& key, const std::string& value);
  // Answers held requests, the newest first. Returns their number.
  size_t Release();
  size_t held();
  size_t abandoned();
  size_t apply_logs();          // number of open ones
  size_t scans();               // number of open ones
  uint64_t granted_bytes();     // by all scans so far
  std::string granted_bound();  // the last one
  std::map<std::string, std::string> Contents(TableId table);
  // Ends the open log stream from the component's side.
  void CloseApplyLog(const Status& status);

  Result<HelloAnswer> Hello(const HelloRequest& request, Deadline deadline) override;
  void Submit(absl::Span<DataRequest* const> requests) override;
  void Abandon(DataRequest* request) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const Sender& sender, const ScanSpec& spec, Deadline deadline) override;
  Result<std::unique_ptr<ApplyLogStream>> OpenApplyLog(const Sender& sender, ApplyLogListener* listener,
                                                       Deadline deadline) override;
  Result<std::vector<std::string>> Partition(const Sender& sender, TableId table, uint32_t n,
                                             Deadline deadline) override;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override;
  Result<std::vector<CounterValue>> Counters(Deadline deadline) override;

 private:
  class Scan;
  class ApplyLog;
  using Records = std::map<std::string, std::string>;

  void Answer(DataRequest* request);
  std::vector<TableInfo> TablesLocked() DEUT_REQUIRES(mutex_);
  // Reads records of [low, high) in order up to one of the limits. `complete` and `covered` are as in DataRequest.
  void ReadRange(TableId table, std::string_view low, std::string_view high, Direction direction,
                 uint32_t limit_records, uint64_t limit_bytes, RecordBatch* records, bool* complete,
                 std::string* covered);

  Runtime& runtime_;
  const DcIncarnation incarnation_;
  Mutex mutex_;
  std::map<TableId, Records> tables_ DEUT_GUARDED_BY(mutex_);
  std::map<TableId, std::string> names_ DEUT_GUARDED_BY(mutex_);
  std::vector<DataRequest*> held_ DEUT_GUARDED_BY(mutex_);
  size_t abandoned_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t scans_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t granted_bytes_ DEUT_GUARDED_BY(mutex_) = 0;
  std::string granted_bound_ DEUT_GUARDED_BY(mutex_);
  size_t apply_logs_ DEUT_GUARDED_BY(mutex_) = 0;
  ApplyLog* current_log_ DEUT_GUARDED_BY(mutex_) = nullptr;
  Position applied_ DEUT_GUARDED_BY(mutex_);
  std::atomic<uint64_t> reads_{0};
};

}  // namespace deut::testing

#endif  // PROTOCOL_TESTING_SCRIPTED_DATA_COMPONENT_H_
