#include "common/base/check.h"
#include "common/base/concat.h"
#include "dc/verify/checkpoint_contents.h"
#include "dc/verify/verify.h"

namespace deut::dc {
namespace {

std::string_view Kind(Damaged what) {
  switch (what) {
    case Damaged::kState:
      return "state";
    case Damaged::kCheckpoint:
      return "checkpoint";
    case Damaged::kSegment:
      return "segment";
    case Damaged::kPage:
    case Damaged::kOlderPage:
      return "page";
    case Damaged::kHotPages:
      return "list of hot pages";
  }
  return "";
}

uint64_t Percent(uint64_t part, uint64_t whole) { return whole == 0 ? 0 : part * 100 / whole; }

void AddTable(const TableReport& table, std::string* text) {
  if (table.root.value == 0) {
    ConcatTo(text, "  ", DroppedText(table.id, table.last), "\n");
    return;
  }
  ConcatTo(text, "  table ", table.id.value, " ", Quoted(table.name), ": root page ", table.root.value, ", ",
           table.records, " records, ", table.tombstones, " tombstones, ", table.delta_parts, " delta parts",
           table.compression == Compression::kNone ? "" : Concat(", compressed with ", NameOf(table.compression)),
           "\n");
  for (size_t i = table.levels.size(); i > 0; --i) {
    const LevelReport& level = table.levels[i - 1];
    if (level.pages == 0) continue;
    ConcatTo(text, "    level ", i - 1, ": ", level.pages, " pages, ", level.entries,
             i == 1 ? " records and tombstones, " : " children, ", level.bytes, " bytes, ", level.bytes / level.pages,
             " a page, ", Percent(level.bytes, level.largest * level.pages), " % of the largest\n");
  }
}

void AddCheckpoint(const CheckpointReport& checkpoint, bool newest, std::string* text) {
  ConcatTo(text, "checkpoint ", checkpoint.head.number.value, newest ? " (the newest): " : " (the one before): ");
  if (!checkpoint.readable) {
    ConcatTo(text, "cannot be read\n");
    return;
  }
  const CheckpointHead& head = checkpoint.head;
  ConcatTo(text, checkpoint.whole() ? "whole" : "DAMAGED", ", position ", head.position.commit.value, "/",
           head.position.sequence, ", stable ", head.stable.commit.value, "/", head.stable.sequence, ", incarnation ",
           head.incarnation.value, "\n  ", checkpoint.pages, " pages in ", checkpoint.segments, " segments, ",
           checkpoint.live_bytes, " bytes live; ", checkpoint.unreached_pages, " images of ",
           checkpoint.unreached_bytes, " bytes that no page names",
           checkpoint.damages == 0 ? "" : ", or only pages that are damaged", "\n");
  // For the older checkpoint, only whether it is intact is of interest.
  if (!newest) return;
  for (const TableReport& table : checkpoint.tables) AddTable(table, text);
}

void AddSegments(const VerifyReport& report, std::string* text) {
  uint64_t bytes = 0, parts = 0, part_bytes = 0, tails = 0, unnamed = 0;
  for (const SegmentReport& segment : report.segments) {
    bytes += segment.file_bytes;
    parts += segment.parts;
    part_bytes += segment.part_bytes;
    tails += segment.tail_bytes;
    unnamed += segment.named_bytes == 0 ? 1 : 0;
  }
  const uint64_t live = report.checkpoints.empty() ? 0 : report.checkpoints[0].live_bytes;
  ConcatTo(text, "segments: ", report.segments.size(), " files of ", bytes, " bytes, ", Percent(live, bytes),
           " % live; ", parts, " parts of ", part_bytes, " bytes; ", tails, " bytes of unused tails; ", unnamed,
           " files that no checkpoint names\n");
}

// Returns what to do, depending on the state of the two checkpoints.
std::string_view Advice(const VerifyReport& report) {
  if (report.clean()) return "";
  if (!report.state.has_value() || report.checkpoints.empty()) return "restore the directory from a backup";
  if (report.checkpoints[0].whole()) {
    return "the newest checkpoint and all its pages are whole: a start will find everything; "
           "what is damaged is not needed any more, or only to fall back";
  }
  if (report.checkpoints.size() > 1 && report.checkpoints[1].whole()) {
    return report.checkpoints[0].readable
               ? "the checkpoint before the newest, and all its pages, are whole: move the newest checkpoint's file "
                 "out of "
                 "the directory, and a start falls back to that one; the redo log brings the rest"
               : "the checkpoint before the newest, and all its pages, are whole: a start falls back to it, and the "
                 "redo "
                 "log brings the rest";
  }
  return "no checkpoint is whole: restore the directory from a backup";
}

}  // namespace

std::string VerdictLine(const VerifyReport& report) {
  if (!report.clean()) {
    return Concat("dc verify: DAMAGED, ", report.damages, report.damages == 1 ? " finding" : " findings");
  }
  uint64_t records = 0, tables = 0;
  if (!report.checkpoints.empty()) {
    for (const TableReport& table : report.checkpoints[0].tables) {
      records += table.records;
      tables += table.root.value == 0 ? 0 : 1;
    }
  }
  return Concat("dc verify: clean, ", report.pages(), " pages, ", records, " records in ", tables, " tables, ",
                report.segments.size(), " segments, ", report.checkpoints.size(), " checkpoints");
}

std::string ReportText(const VerifyReport& report) {
  std::string text;
  if (report.state.has_value()) {
    ConcatTo(&text, "data component ", report.state->dc.value, ", incarnation ", report.state->number.value, "\n");
  }
  for (size_t i = 0; i < report.checkpoints.size(); ++i) AddCheckpoint(report.checkpoints[i], i == 0, &text);
  AddSegments(report, &text);
  if (report.hot_pages.has_value()) {
    ConcatTo(&text, "hot pages: ", *report.hot_pages, " were in memory, and are fetched after a start\n");
  }
  for (const std::string& note : report.notes) ConcatTo(&text, "note: ", note, "\n");
  for (const Finding& finding : report.findings) {
    ConcatTo(&text, "DAMAGED ", Kind(finding.what), ": ", finding.text, "; ", finding.remedy, "\n");
  }
  DEUT_CHECK(report.damages >= report.findings.size());
  if (report.damages > report.findings.size()) {
    ConcatTo(&text, "and ", report.damages - report.findings.size(), " more\n");
  }
  if (!report.clean()) ConcatTo(&text, "what to do: ", Advice(report), "\n");
  ConcatTo(&text, VerdictLine(report), "\n");
  return text;
}

}  // namespace deut::dc
