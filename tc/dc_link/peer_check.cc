#include "tc/dc_link/peer_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/testing/test_points.h"
#include "tc/dc_link/position_text.h"

namespace deut::tc {

Status CheckPeer(const HelloAnswer& hello, const PeerExpectation& expected, const std::string& dc_name) {
  const std::string name =
      absl::StrCat(dc_name, " (id ", hello.dc.value, ", incarnation ", hello.incarnation.value, ")");
  if (hello.dc.value == 0 || hello.incarnation.value == 0 || hello.stable > hello.applied) {
    return DEUT_ERROR(kCorruption, name, " gives no identity, no incarnation, or a stable position ",
                      ToString(hello.stable), " beyond the applied one ", ToString(hello.applied));
  }
  const bool known = std::ranges::find(expected.known_dcs, hello.dc) != expected.known_dcs.end();
  if (!known && !DEUT_OMITTED("X4.refuse_unknown")) {
    if (!expected.known_dcs.empty()) {
      return DEUT_ERROR(kWrongState, name, " is not a DC of this redo log, which knows ", expected.known_dcs.size(),
                        " (first id ", expected.known_dcs.front().value, "); refusing to serve, nothing was deleted");
    }
    if (hello.applied != Position{} || !hello.tables.empty()) {
      return DEUT_ERROR(kWrongState, name, " holds data up to ", ToString(hello.applied), " and ", hello.tables.size(),
                        " tables, but this redo log knows no DC yet; refusing to serve, nothing was deleted");
    }
  }
  if (hello.applied > expected.limit && !DEUT_OMITTED("X4.refuse_ahead")) {
    return DEUT_ERROR(kCorruption, name, " has applied ", ToString(hello.applied), " but the redo log ends before ",
                      ToString(expected.limit), ": the log has lost its end; refusing to serve, nothing was deleted");
  }
  for (const DcPosition& logged : expected.redo_start.stable) {
    if (logged.dc != hello.dc || hello.stable >= logged.stable || DEUT_OMITTED("S2.refuse_lost_stable")) continue;
    return DEUT_ERROR(kCorruption, name, " has ", ToString(hello.stable), " stable but had reported ",
                      ToString(logged.stable), " when redo start ", expected.redo_start.lsn.value,
                      " was logged: what lies between is lost; refusing to serve, nothing was deleted");
  }
  return Status::Ok();
}

}  // namespace deut::tc
