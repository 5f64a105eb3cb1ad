#include "tc/dc_link/met_incarnations.h"

#include <utility>

#include "common/base/check.h"

namespace deut::tc {

bool MetIncarnations::Meet(const HelloAnswer& hello, std::shared_ptr<DirectReads> reads) {
  DEUT_CHECK(hello.incarnation.value != 0);  // 0 means that the gate is closed
  const bool another = hello.incarnation != present_.incarnation;
  present_.dc = hello.dc;
  if (!another) return false;
  present_.incarnation = hello.incarnation;
  present_.number = hello.number;
  if (reads_ != nullptr) earlier_reads_.push_back(std::move(reads_));
  reads_ = std::move(reads);
  ++count_;
  return true;
}

}  // namespace deut::tc
