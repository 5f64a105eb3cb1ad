#include "common/base/concat.h"
#include "tc/log_format/block_format.h"
#include "tc/verify/verify.h"

namespace deut::tc {
namespace {

uint64_t CommitsOf(const LogReport& report) { return report.counts.of(RecordType::kCommit).count; }

void AddRecords(const ChainCounts& counts, std::string* text) {
  const auto add = [&](RecordType type, std::string_view name) {
    const ChainCounts::Records& records = counts.of(type);
    if (records.count != 0) ConcatTo(text, "  ", name, ": ", records.count, ", ", records.bytes, " bytes\n");
  };
  add(RecordType::kCommit, "commits");
  add(RecordType::kChunk, "chunks");
  add(RecordType::kLowWater, "low-water records");
  add(RecordType::kReserveTimestamps, "reservations of timestamps");
  add(RecordType::kEpochStart, "epoch starts");
  add(RecordType::kEndOfEpoch, "ends of epoch");
  add(RecordType::kRedoStart, "redo starts");
  add(RecordType::kKnownDc, "known data components");
  add(RecordType::kOutcomeHorizon, "outcome horizons");
  add(RecordType::kTrimmed, "trims");
}

void AddState(const LogState& state, std::string* text) {
  ConcatTo(text, "timestamps below ", state.reserved.value, " are reserved, low-water ", state.low_water.value,
           "\nredo starts at LSN ", state.redo_start.lsn.value);
  for (const DcPosition& position : state.redo_start.stable) {
    ConcatTo(text, ", data component ", position.dc.value, " was stable at ", position.stable.commit.value, "/",
             position.stable.sequence);
  }
  ConcatTo(text, "\n");
  for (const DcId dc : state.known_dcs) ConcatTo(text, "data component ", dc.value, " belongs to it\n");
}

}  // namespace

std::string VerdictLine(const LogReport& report) {
  if (!report.clean()) {
    return Concat("tc verify: DAMAGED, ", report.damages, report.damages == 1 ? " finding" : " findings");
  }
  return Concat("tc verify: clean, ", CommitsOf(report), " commits, ", report.counts.updates, " updates in ",
                report.counts.blocks, " blocks, ", report.counts.segments, " segments, ", report.counts.starts,
                " starts");
}

std::string ReportText(const LogReport& report) {
  std::string text;
  const ChainCounts& counts = report.counts;
  if (counts.segments != 0) {
    ConcatTo(&text, "transaction component ", report.state.tc.value, ", epoch ", report.state.epoch.value, "\n",
             counts.segments, " segments of ", report.files, " files, ", counts.starts, " starts, ", counts.blocks,
             " blocks of ", counts.block_bytes, " bytes\n");
    ConcatTo(&text, "records from LSN ", report.first_lsn.value, " on: ", counts.updates, " updates\n");
    AddRecords(counts, &text);
    if (counts.orphans != 0)
      ConcatTo(&text, "  of the chunks ", counts.orphans, " are of transactions that did not commit\n");
    AddState(report.state, &text);
  } else if (report.clean()) {
    ConcatTo(&text, "there is no log: nothing was ever durable\n");
  }
  if (report.end && counts.segments != 0) {
    ConcatTo(&text, "the log ends at LSN ", report.end->lsn.value, ": ", report.end_reason, "\n");
  }
  if (counts.behind_blocks != 0) {
    ConcatTo(&text, "behind its end: ", counts.behind_blocks, " whole blocks of ", counts.behind_bytes,
             report.clean() ? " bytes, which were never acknowledged: a start cuts them off\n" : " bytes, or more\n");
  }
  if (report.unproven_bytes != 0) {
    ConcatTo(&text, "of the last ", report.unproven_bytes,
             " bytes no later block says that they were durable: a start writes them again\n");
  }
  for (const std::string& note : report.notes) ConcatTo(&text, "note: ", note, "\n");
  for (const LogFinding& finding : report.findings) {
    ConcatTo(&text, "DAMAGED ", finding.rule.empty() ? "log" : Concat("records (rule ", finding.rule, ")"), ": ",
             finding.text, "\n");
  }
  if (report.damages > report.findings.size())
    ConcatTo(&text, "and ", report.damages - report.findings.size(), " more\n");
  if (!report.clean()) {
    ConcatTo(
        &text,
        "what to do: tcd refuses a damaged log and deletes nothing; put whole files back, or restore the log and its ",
        "data components from one backup; `deut tc dump` shows what can be read\n");
  }
  ConcatTo(&text, VerdictLine(report), "\n");
  return text;
}

}  // namespace deut::tc
