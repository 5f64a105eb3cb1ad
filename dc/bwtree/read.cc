// Point reads. HOT PATH: no allocation (but the answer's own), no lock, no system call.
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/leaf_view.h"

namespace deut::dc {

BwTree::Found BwTree::Read(std::string_view key, RecordBatch* answer) {
  const ReclamationDomain::Guard guard(domain_);
  const PageView page = Descend(/*level=*/0, Target(key, Side::kAt));
  if (!page.loaded()) return Found::kNotLoaded;
  const bool found = AppendRecord(page.head(), key, answer);
  if (page.head()->chain_length != 0) ConsolidateForReaders(page, page.head()->chain_length);
  return found ? Found::kYes : Found::kNo;
}

}  // namespace deut::dc
