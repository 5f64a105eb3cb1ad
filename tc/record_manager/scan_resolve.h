// ScanResolve: step 3 of a scan (scan_path.h), before the merge: finds the gathered keys' versions as the reader sees
// them: in chains, in spilled runs, in the log. For the rest it asks the DC again (S5).
// Thread-safety: one thread at a time. Ownership: borrows everything.
#ifndef TC_RECORD_MANAGER_SCAN_RESOLVE_H_
#define TC_RECORD_MANAGER_SCAN_RESOLVE_H_

#include <array>
#include <cstddef>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/scan_ask.h"
#include "tc/scan/gathered_keys.h"

namespace deut::tc {

class ScanResolve {
 public:
  ScanResolve(const ScanCall& call, const TableState& table, const ReaderView& view, GatheredKeys& gathered)
      : call_(call), table_(table), view_(view), gathered_(gathered) {}

  // Finds the versions of keys [begin, *piece), or of fewer if they fill the batch: then *piece is where it stopped.
  Status Resolve(size_t begin, size_t* piece);

 private:
  static constexpr size_t kFetchedAtOnce = 16;
  using Entries = std::array<RecordEntry*, kFetchedAtOnce>;

  // Finds where the keys' chains begin, and prefetches what a look at each will need. REQUIRES: a guard.
  void FetchChains(absl::Span<GatheredKey> keys, Entries* entries);
  // Notes what the chain shows of the key. Returns the bytes that it adds to the batch.
  size_t ResolveOne(const RecordEntry* entry, GatheredKey* gathered);
  // S9: looks in spilled runs for those of [begin, *piece) that the chains do not show. Large values make it stop
  // early and lower *piece.
  Status FindSpilled(size_t begin, size_t* piece);
  // S9: reads back those keys' values that are paged out, each file from its beginning to its end.
  Status ReadBack(absl::Span<GatheredKey> keys);
  // S5: asks the DC again for those keys that nothing in the TC shows.
  Status ReaskDc(absl::Span<GatheredKey> keys);

  const ScanCall& call_;
  const TableState& table_;
  const ReaderView& view_;
  GatheredKeys& gathered_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_RESOLVE_H_
