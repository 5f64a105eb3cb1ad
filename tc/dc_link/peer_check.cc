#include "tc/dc_link/peer_check.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/testing/test_points.h"
#include "tc/dc_link/position_text.h"

namespace deut::tc {

Status CheckPeer(const HelloAnswer& hello, const PeerExpectation& expected, const std::string& dc_name) {
  const std::string name = absl::StrCat(dc_name, " (id ", hello.dc.value, ", incarnation ", hello.number.value, ")");
  if (hello.dc.value == 0 || hello.incarnation.value == 0 || hello.stable > hello.applied) {
    return DEUT_ERROR(kCorruption, name, " gives no identity, no incarnation, or a stable position ",
                      ToString(hello.stable), " beyond the applied one ", ToString(hello.applied));
  }
  const bool known = std::ranges::find(expected.known_dcs, hello.dc) != expected.known_dcs.end();
  if (!known && DEUT_STEP("X4.refuse_unknown")) {
    if (!expected.known_dcs.empty()) {
      return DEUT_ERROR(kWrongState, name, " is not a DC of the redo log of TC ", expected.tc.value, ", which knows ",
                        expected.known_dcs.size(), " (first id ", expected.known_dcs.front().value,
                        "); refusing to serve, nothing was deleted");
    }
    if (hello.applied != Position{} || !hello.tables.empty()) {
      return DEUT_ERROR(kWrongState, name, " holds data up to ", ToString(hello.applied), " and ", hello.tables.size(),
                        " tables, but the redo log of TC ", expected.tc.value,
                        " knows no DC yet; refusing to serve, nothing was deleted");
    }
  }
  if (hello.applied > expected.limit && DEUT_STEP("X4.refuse_ahead")) {
    return DEUT_ERROR(kCorruption, name, " has applied ", ToString(hello.applied),
                      " but the redo log has sent nothing behind ", ToString(expected.limit),
                      ": the log has lost its end; refusing to serve, nothing was deleted");
  }
  for (const DcPosition& logged : expected.redo_start.stable) {
    if (logged.dc != hello.dc || hello.stable >= logged.stable || DEUT_OMITTED("S2.refuse_lost_stable")) continue;
    return DEUT_ERROR(kCorruption, name, " has ", ToString(hello.stable), " stable but had reported ",
                      ToString(logged.stable), " when redo start ", expected.redo_start.lsn.value,
                      " was logged: what lies between is lost, or the DC's folder was put back from an older copy; "
                      "refusing to serve, nothing was "
                      "deleted");
  }
  return Status::Ok();
}

namespace {

// True if the log was durable beyond `end`. Commits may have been acknowledged up to there, even if the DC lacks
// them: it lagged when that log was lost or copied.
bool DurableBeyond(const HelloAnswer& answer, Lsn end) {
  return answer.log_durable > end && DEUT_STEP("X4.compare_durable");
}

}  // namespace

Status CheckHistory(const HelloAnswer& answer, const LogHistory& log, const std::string& dc_name) {
  const ObeyedTc& obeyed = answer.obeyed;
  // The DC obeys this process already: the answer to an earlier Hello was lost.
  const bool self = obeyed.epoch == log.epoch && obeyed.nonce == log.nonce;
  if (obeyed.epoch.value == 0 || self) return Status::Ok();
  // This check finds everything that the comparison of positions finds, and more. So a build that omits that
  // comparison must omit this one too.
  if (DEUT_OMITTED("X4.compare_lives") || DEUT_OMITTED("X4.refuse_ahead")) return Status::Ok();
  const auto lost = [&](const std::string& why) {
    return DEUT_ERROR(kCorruption, dc_name, " (id ", answer.dc.value, ") obeyed epoch ", obeyed.epoch.value,
                      " of this TC, has applied ", ToString(answer.applied),
                      " and knows its log to have been durable up to LSN ", answer.log_durable.value, ", but ", why,
                      ": the log has lost its end, or is an older copy, or the DC's folder is a copy that has gone on "
                      "elsewhere; refusing to serve, nothing was changed");
  };
  if (log.starts.empty()) return lost("the redo log is empty");
  const auto start = std::ranges::find(log.starts, obeyed.epoch, &LogStart::epoch);
  if (start == log.starts.end() && obeyed.epoch < log.starts.front().epoch) {
    // The records of that epoch are gone. All of them were stable at the DC, and every later epoch has begun behind
    // them.
    if (answer.applied.commit < log.first_lsn && !DurableBeyond(answer, log.first_lsn)) return Status::Ok();
    return lost(absl::StrCat("in the redo log that epoch ended before LSN ", log.first_lsn.value));
  }
  if (start == log.starts.end() || start->nonce != obeyed.nonce) {
    return lost(absl::StrCat("the redo log, which ends at LSN ", log.end_lsn.value, " in epoch ",
                             log.starts.back().epoch.value, ", has no such start"));
  }
  const Lsn end = std::next(start) == log.starts.end() ? log.end_lsn : std::next(start)->begin;
  if (answer.applied.commit < end && !DurableBeyond(answer, end)) return Status::Ok();
  return lost(absl::StrCat("in the redo log that epoch ends before LSN ", end.value));
}

}  // namespace deut::tc
