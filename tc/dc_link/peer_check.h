// CheckPeer: whether the DC that answered Hello is the one that the redo log knows, in a state that the log can bring up to date (rules
// X4, S2). A DC that fails is refused for good: the TC does not serve, and nothing is deleted on either side.
// Thread-safety: a pure function.
#ifndef TC_DC_LINK_PEER_CHECK_H_
#define TC_DC_LINK_PEER_CHECK_H_

#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/data_component.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

struct PeerExpectation {
  std::vector<DcId> known_dcs;  // of the log; empty: the first DC that answers, if it is empty, becomes known
  RedoStart redo_start;         // the last one logged
  // The furthest a DC of this log can be: at TC start the last commit or low-water of the recovered log, later what this TC has sent.
  Position limit;
  TcId tc = {};  // the log's; for messages
};

// What the recovered log says of its lives, and which one begins now.
struct LogHistory {
  TcEpoch epoch;
  uint64_t nonce = 0;
  std::vector<LogLife> lives;
  Lsn first_lsn;
  Lsn end_lsn;
};

// WRONG_STATE: a DC that the log does not know, or one that holds data where the log has none.
// CORRUPTION: the DC is ahead of the log (the log lost its end), behind the stable position logged with the redo start (the DC lost what
// it had reported stable, and the log may have been trimmed since), or contradicts itself.
Status CheckPeer(const HelloAnswer& hello, const PeerExpectation& expected, const std::string& dc_name);

// What the DC obeyed last, and how far it has come under it, against the lives of the recovered log (X4). LSNs alone do not tell a log
// that has lost its
// end from one that has grown again since: a position counts only together with the life of the TC that sent it. What this life itself has sent is
// CheckPeer's to compare.
// CORRUPTION: the log has no such life, or had ended in it before the position that the DC has, or before the LSN up to which it was durable once.
Status CheckHistory(const HelloAnswer& answer, const LogHistory& log, const std::string& dc_name);

}  // namespace deut::tc

#endif  // TC_DC_LINK_PEER_CHECK_H_
