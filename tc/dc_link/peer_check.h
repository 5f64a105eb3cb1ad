// CheckPeer: decides whether the DC that answered Hello is the one that the redo log knows. Its state must also be
// one that the log can bring up to date (rules X4, S2). A DC that fails is refused for good: the TC does not serve,
// and nothing is deleted on either side.
// Thread-safety: pure functions.
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
  std::vector<DcId> known_dcs;  // of the log; if empty, the first DC that answers and holds no data becomes known
  RedoStart redo_start;         // the last one logged
  // The last position that a DC of this log can have. At TC start it is the last commit or low-water of the recovered
  // log, later the last position that this TC has sent.
  Position limit;
  TcId tc = {};  // the log's; for messages
};

// The TC epochs in the recovered log, and the one that begins now.
struct LogHistory {
  TcEpoch epoch;
  uint64_t nonce = 0;
  std::vector<LogStart> starts;
  Lsn first_lsn;
  Lsn end_lsn;
};

// WRONG_STATE: a DC that the log does not know, or one that holds data where the log has none.
// CORRUPTION, in one of three cases:
//   1. the DC is ahead of the log: the log lost its end;
//   2. the DC is behind the stable position logged with the redo start: it lost updates that it had reported stable,
//      and the log may have been trimmed since;
//   3. the DC contradicts itself.
Status CheckPeer(const HelloAnswer& hello, const PeerExpectation& expected, const std::string& dc_name);

// Compares the TC that the DC obeyed last, and the DC's position under it, with the TC epochs of the recovered log
// (X4). LSNs alone do not tell a log that has lost its end from one that has grown again since. So a position counts
// only together with the TC epoch that sent it. CheckPeer compares what the present process has sent.
// CORRUPTION: the log has no such epoch; or that epoch ended in it before the DC's position, or before the LSN up to
// which it was durable once.
Status CheckHistory(const HelloAnswer& answer, const LogHistory& log, const std::string& dc_name);

}  // namespace deut::tc

#endif  // TC_DC_LINK_PEER_CHECK_H_
