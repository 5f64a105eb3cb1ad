// Point reads. HOT PATH: no allocation (but the answer's own), no lock, no system call.
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/leaf_view.h"

namespace deut::dc {

bool BwTree::Read(std::string_view key, RecordBatch* answer) {
  const ReclamationDomain::Guard guard(domain_);
  const PageView page = Descend(/*level=*/0, key, Side::kAt);
  PageEntry found;
  if (!FindRecord(page.head, key, &found)) return false;
  answer->Append(found.key(), found.value(), found.version);
  return true;
}

}  // namespace deut::dc
