#include "tc/dc_link/link_harness.h"

#include "common/base/check.h"

namespace deut::tc {

LinkHarness::LinkHarness() : disk(RealRuntime(), 1) {
  log_options.directory = "log";
  log_options.ring_bytes = 1 << 20;
  log_options.segment_bytes = 1 << 20;
  log_options.max_record_bytes = 128 << 10;
  log_options.chunk_bytes = 32 << 10;
  log_options.block_bytes = 64 << 10;
  log_options.space_reserve_bytes = 0;
  log_options.on_failure = [](const Status&) {};
  link_options.dc_name = "dc-under-test";
  link_options.reconnect_min = milliseconds(2);
  link_options.reconnect_max = milliseconds(20);
  link_options.redo_start_period = milliseconds(5);
  link_options.on_fatal = [this](const Status& status) {
    MutexLock lock(mutex_);
    fatal_.push_back(status);
  };
}

LinkHarness::~LinkHarness() { StopTc(); }

void LinkHarness::StartTc() {
  storage = disk.Mount();
  Result<std::unique_ptr<RedoLog>> opened = look_first
                                                ? RedoLog::Recover(log_options, RealRuntime(), *storage, &recovered)
                                                : RedoLog::Open(log_options, RealRuntime(), *storage, &recovered);
  if (!opened.ok()) FailStop(opened.status().ToString());
  log = std::move(*opened);
  link_options.begin_log = [this] {
    if (before_begin) before_begin();
    return log->begun() ? Status::Ok() : log->Begin();
  };
  transactions.set_log(log.get());
  transactions.SkipTo(recovered.first_timestamp);
  link = std::make_unique<DcLink>(RealRuntime(), dc, *log, recovered, transactions, transactions, link_options);
  link->Start();
}

void LinkHarness::StopTc() {
  link.reset();
  if (log != nullptr) log->Stop();
  log.reset();
  storage.reset();
}

void LinkHarness::CrashTc() {
  disk.Crash(RealRuntime().RandomSeed());
  StopTc();
}

Position LinkHarness::Commit(const std::vector<std::pair<std::string, std::string>>& puts,
                             std::optional<Timestamp> timestamp) {
  if (!timestamp) timestamp = transactions.Draw();
  std::vector<Update> updates;
  for (const auto& [key, value] : puts) {
    updates.push_back(Update{LogEntryKind::kPut, static_cast<uint32_t>(updates.size() + 1), kTable, key, value});
  }
  return Position{log->AppendCommit(*timestamp, updates).lsn, UINT32_MAX};
}

void LinkHarness::CommitAndApply(const std::vector<std::pair<std::string, std::string>>& puts) {
  DEUT_CHECK(WaitApplied(Commit(puts)));
}

bool LinkHarness::WaitApplied(Position position) {
  const Deadline deadline = Soon();
  while (link->applied() < position) {
    if (RealRuntime().Now() >= deadline) return false;
    RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(100));
  }
  return true;
}

Result<std::optional<std::string>> LinkHarness::Read(const std::string& key, Deadline deadline) {
  DataRequest request;
  request.table = kTable;
  request.key = key;
  DataRequest* requests[] = {&request};
  DEUT_RETURN_IF_ERROR(link->Read(requests, deadline));
  DEUT_RETURN_IF_ERROR(request.status);
  RecordBatch::Iterator it(request.answer);
  if (!it.Valid()) return std::optional<std::string>();
  return std::optional<std::string>(it.record().value);
}

std::vector<Status> LinkHarness::fatal() {
  MutexLock lock(mutex_);
  return fatal_;
}

bool LinkHarness::WaitFatal() {
  return dc.WaitUntil([this] { return !fatal().empty(); });
}

}  // namespace deut::tc
