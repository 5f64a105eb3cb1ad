#include "integration/scenarios/fault_driver.h"

#include <utility>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "integration/harness/fault_proxy.h"
#include "integration/harness/stream_replay.h"
#include "tc/client/client.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut::scenarios {
namespace {

using testing::Direction;
using testing::FaultProxy;
using testing::FlowFaults;
using testing::RecordedConnection;
using testing::ReplayReport;

void Pause(Duration duration) { RealRuntime().SleepUntil(RealRuntime().Now() + duration); }

}  // namespace

FaultDriver::FaultDriver(testing::Cluster& cluster, const Scenario& scenario, testing::SmallDisk* disk, Random& random,
                         Effects* effects)
    : cluster_(cluster), scenario_(scenario), disk_(disk), random_(random), effects_(*effects) {}

Status FaultDriver::Do(const Fault& fault) {
  ++effects_[fault.text];
  switch (fault.kind) {
    case FaultKind::kKill:
      Kill(fault);
      Stay(fault);
      Start(fault);
      return Status();
    case FaultKind::kStorm:
      for (uint64_t times = fault.times.Draw(random_); times > 0; --times) {
        Kill(fault);
        Start(fault);
        Stay(fault);
      }
      return Status();
    case FaultKind::kFreeze:
      Freeze(fault);
      return Status();
    case FaultKind::kReplay:
      return Replay(fault);
    case FaultKind::kDropCaches:
      // The TC may be away, so this may fail.
      if (cluster_.client().DropCaches({.timeout = seconds(1)}).ok()) ++effects_["caches dropped"];
      return Status();
    case FaultKind::kDiskFull:
      return FillDisk();
    default:
      DoToLinks(fault);
      return Status();
  }
}

void FaultDriver::Stay(const Fault& fault) { Pause(fault.stay.Draw(random_)); }

void FaultDriver::Kill(const Fault& fault) {
  const bool tc_first = random_.OneIn(2);
  if (fault.tc && tc_first) cluster_.KillTc();
  if (fault.dc) cluster_.KillDc();
  if (fault.tc && !tc_first) cluster_.KillTc();
  effects_["kills"] += static_cast<uint64_t>(fault.tc) + static_cast<uint64_t>(fault.dc);
}

void FaultDriver::Start(const Fault& fault) {
  const bool tc_first = random_.OneIn(2);
  if (fault.tc && tc_first) cluster_.StartTc();
  if (fault.dc) cluster_.StartDc();
  if (fault.tc && !tc_first) cluster_.StartTc();
}

void FaultDriver::Freeze(const Fault& fault) {
  if (fault.tc) cluster_.tc()->Freeze();
  if (fault.dc) cluster_.dc()->Freeze();
  Stay(fault);
  if (fault.tc) cluster_.tc()->Thaw();
  if (fault.dc) cluster_.dc()->Thaw();
}

std::vector<FaultProxy*> FaultDriver::Links(const Fault& fault) {
  std::vector<FaultProxy*> links;
  if (fault.client_tc) links.push_back(&cluster_.client_tc());
  if (fault.tc_dc) links.push_back(&cluster_.tc_dc());
  return links;
}

void FaultDriver::SetFlows(const Fault& fault, bool on_top) {
  FlowFaults faults{
      .drop = fault.kind == FaultKind::kDrop, .delay = fault.delay, .bytes_per_second = fault.bytes_per_second};
  for (FaultProxy* link : Links(fault)) {
    for (const Direction direction : {Direction::kToServer, Direction::kToClient}) {
      if (!(direction == Direction::kToServer ? fault.to_server : fault.to_client)) continue;
      FlowFaults both = faults;
      for (const Fault& other : scenario_.always) {
        const bool same = on_top && (link == &cluster_.client_tc() ? other.client_tc : other.tc_dc) &&
                          (direction == Direction::kToServer ? other.to_server : other.to_client);
        if (same) both.delay += other.delay;
      }
      link->SetFlow(direction, both);
    }
  }
}

void FaultDriver::SetAlways() {
  for (const Fault& fault : scenario_.always) SetFlows(fault, false);
}

void FaultDriver::HealLinks() {
  cluster_.client_tc().Heal();
  cluster_.tc_dc().Heal();
  SetAlways();
}

void FaultDriver::DoToLinks(const Fault& fault) {
  uint64_t dropped = 0;
  for (FaultProxy* link : Links(fault)) {
    if (fault.kind == FaultKind::kReset) effects_["connections reset"] += link->Reset();
    if (fault.kind == FaultKind::kHalfOpen) effects_["connections half open"] += link->HalfOpen(fault.told);
    if (fault.kind == FaultKind::kPartition) link->SetPartitioned(true);
    dropped += link->Counters().dropped;
  }
  if (fault.kind == FaultKind::kReset || fault.kind == FaultKind::kHalfOpen) return;
  if (fault.kind != FaultKind::kPartition) SetFlows(fault, true);
  Stay(fault);
  if (fault.kind == FaultKind::kDrop) {
    uint64_t now = 0;
    for (FaultProxy* link : Links(fault)) now += link->Counters().dropped;
    effects_["bytes dropped"] += now - dropped;
  }
  HealLinks();
}

std::vector<std::string> FaultDriver::RecordedStreams(Which which) {
  std::vector<std::string> streams;
  for (RecordedConnection& recorded : cluster_.tc_dc().Recorded()) {
    const bool wanted = which == Which::kAny || (which == Which::kLive) == recorded.open;
    if (wanted && testing::LogStreamsIn(recorded.to_server) > 0) streams.push_back(std::move(recorded.to_server));
  }
  return streams;
}

Status FaultDriver::Replay(const Fault& fault) {
  // A daemon that was killed a moment ago may not listen yet, or may not have a stream.
  const Deadline limit = RealRuntime().Now() + scenario_.stall;
  std::vector<std::string> streams = RecordedStreams(fault.which);
  while (streams.empty() && RealRuntime().Now() < limit) {
    Pause(milliseconds(1));
    streams = RecordedStreams(fault.which);
  }
  if (streams.empty()) return DEUT_ERROR(kDeadlineExceeded, "no stream was recorded for: ", fault.text);
  const std::string& stream = streams[random_.Below(streams.size())];
  ReplayReport report = testing::ReplayConnection(cluster_.dc_port(), stream);
  while (!report.connected && RealRuntime().Now() < limit) {
    Pause(milliseconds(1));
    report = testing::ReplayConnection(cluster_.dc_port(), stream);
  }
  if (!report.connected) return DEUT_ERROR(kDeadlineExceeded, "nobody listens to: ", fault.text);
  ++effects_["replays"];
  if (report.answered_bytes > 0) ++effects_["replays answered"];
  effects_["bytes replayed"] += report.data_bytes;
  return Status();
}

// Fills the disk under the TC's log and writes until the TC refuses a write for it. Reads must work meanwhile, also
// after the TC starts on the full disk.
Status FaultDriver::FillDisk() {
  Client& client = cluster_.client();
  TableId table;
  DEUT_RETURN_IF_ERROR(cluster_.AwaitServing(scenario_.stall));
  Result<TableId> opened = client.OpenTable("filler");
  if (opened.status() == ErrorCode::kNotFound) opened = client.CreateTable("filler");
  DEUT_RETURN_IF_ERROR(opened.status());
  table = *opened;
  DEUT_RETURN_IF_ERROR(disk_->Fill());
  Status status = WriteUntilRefused(table);
  if (status.ok()) status = ReadWhileFull(table);
  if (status.ok()) ++effects_["full disks noticed"];
  // The first start may find an unused segment of the previous life; later starts find none.
  for (int start = 0; start < 3 && status.ok(); ++start) {
    cluster_.KillTc();
    cluster_.StartTc();
    status = cluster_.AwaitServing(scenario_.stall);
    if (!status.ok()) status = DEUT_ERROR(kWrongState, "no start while the disk is full: ", status.ToString());
    if (status.ok()) status = ReadWhileFull(table);
  }
  if (status.ok()) status = WriteUntilRefused(table);
  if (status.ok()) ++effects_["starts on a full disk"];
  disk_->Free();
  return status;
}

Status FaultDriver::ReadWhileFull(TableId table) {
  OneShot read(cluster_.client());
  read.Get(table, "filler0");
  const Status status = RunOneShot(read, {.timeout = seconds(10)}).status();
  return status.ok() ? status : DEUT_ERROR(kWrongState, "no reads while the disk is full: ", status.ToString());
}

Status FaultDriver::WriteUntilRefused(TableId table) {
  const Deadline limit = RealRuntime().Now() + scenario_.stall;
  const std::string value(60'000, 'x');
  while (RealRuntime().Now() < limit) {
    OneShot put(cluster_.client());
    for (int i = 0; i < 16; ++i) put.Put(table, Concat("filler", i), value);
    const Status status = put.Run({.timeout = seconds(10)}).status();
    if (status == ErrorCode::kResourceExhausted && status.message().find("is full") != std::string::npos)
      return Status();
    const bool expected = status.ok() || IsRetryable(status) || status == ErrorCode::kDeadlineExceeded ||
                          status == ErrorCode::kOutcomeUnknown;
    if (!expected) return DEUT_ERROR(kWrongState, "while the disk was being filled: ", status.ToString());
  }
  return DEUT_ERROR(kDeadlineExceeded, "the disk is full, and no write is refused");
}

}  // namespace deut::scenarios
