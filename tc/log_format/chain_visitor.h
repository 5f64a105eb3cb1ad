// ChainVisitor: receives what recovery finds in a redo log, in log order, from the one code that reads it. It serves
// programs that inspect a log without opening it (tc/verify).
// Thread-safety: called on the thread of RecoverChain. Ownership: arguments are valid until the method returns.
#ifndef TC_LOG_FORMAT_CHAIN_VISITOR_H_
#define TC_LOG_FORMAT_CHAIN_VISITOR_H_

#include "common/base/status.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"

namespace deut::tc {

class ChainVisitor {
 public:
  virtual ~ChainVisitor() = default;

  // The header of the chain's next segment, with the state that it repeats.
  virtual void OnSegment(const BlockHeader& header, const LogState& repeated) = 0;
  // The chain's next block; its records follow.
  virtual void OnBlock(const BlockHeader& header) = 0;
  virtual void OnRecord(const LogRecord& record) = 0;
  // The chain ends here; `why` names file and offset. Not called if recovery stops earlier: a file is missing, or a
  // whole block holds bytes that no writer writes.
  virtual void OnEnd(const Cut& end, const Status& why) = 0;
  // A whole block behind the end, with the TC epoch of the chain's last segment or a later one.
  virtual void OnBlockBehindEnd(const BlockHeader& header) = 0;
};

}  // namespace deut::tc

#endif  // TC_LOG_FORMAT_CHAIN_VISITOR_H_
