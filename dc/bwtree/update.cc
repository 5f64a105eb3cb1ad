// Put and delete. HOT PATH: one allocation, no lock, no system call.
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/leaf_view.h"

namespace deut::dc {
Result<BwTree::Outcome> BwTree::Put(std::string_view key, std::string_view value, Version version) {
  return Update(NodeKind::kPut, key, value, version);
}

Result<BwTree::Outcome> BwTree::Delete(std::string_view key, Version version) {
  return Update(NodeKind::kTombstone, key, {}, version);
}

Result<BwTree::Outcome> BwTree::Update(NodeKind kind, std::string_view key, std::string_view value, Version version) {
  DEUT_CHECK(!key.empty() && key.size() <= kMaxKeyBytes && value.size() <= kMaxValueBytes);
  Owned<RecordDelta> delta = RecordDelta::New(kind, key, value, version);
  const Target target(key, Side::kAt);
  const ReclamationDomain::Guard guard(domain_);
  for (;;) {
    PageView page = Descend(/*level=*/0, target);
    bool again = false;
    while (page.head->is_leaf() && (!LiesLeft(*page.head, target) || (again && DEUT_OMITTED("bwtree.fence_again")))) {
      again = true;
      const Node* const head = page.head;
      // No page's flat timestamp reaches C, so the base need not be looked at for what comes in time. After a new stream has set C back
      // a duplicate may get into the chain; it is passed over there.
      if (version.timestamp.value < consolidation_timestamp_.load(std::memory_order_relaxed) &&
          IsDuplicate(version, head->base->flat())) {
        return Outcome::kDuplicate;
      }
      delta->LinkTo(head);
      if (MustConsolidate(head)) {
        // The delta stays ours: it goes into the new base by value.
        bool won = false;
        DEUT_RETURN_IF_ERROR(ReplaceByHalves(page.id, head, BuildConsolidated(delta.get()), &won));
        if (won) return Outcome::kApplied;
      } else {
        DEUT_POINT("bwtree.update.before_cas");
        if (!DEUT_CAS_FAILS("bwtree.update.cas") && pages_.Replace(page.id, head, delta.get())) {
          const RecordDelta* const installed = delta.release();
          CountPublished(installed->bytes());
          if (NeedsConsolidation(installed)) DEUT_RETURN_IF_ERROR(Consolidate(page.id, installed));
          return Outcome::kApplied;
        }
      }
      page.head = pages_.Load(page.id);
    }
  }
}

}  // namespace deut::dc
