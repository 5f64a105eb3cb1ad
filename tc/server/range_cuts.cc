#include "tc/server/range_cuts.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"
#include "tc/txn/write_set.h"

namespace deut::tc {
namespace {

// Limits of a look at a range's postings: transactions, and keys of each.
constexpr size_t kTransactions = 512;
constexpr size_t kKeysEach = 8;

}  // namespace

std::vector<std::string> KeysWritten(ReclamationDomain& domain, const TableState& table, const Range& range,
                                     size_t enough) {
  std::vector<std::string> keys;
  {
    ReclamationDomain::Guard guard(domain);
    size_t transactions = 0;
    range.ForEachPosting([&](const TransactionRecord& record) {
      const WriteSet* const writes = record.write_set();
      size_t taken = 0;
      if (writes != nullptr) {
        writes->ForEachIn(table.id(), range.low(), range.high(), true, kKeysEach, [&](const WriteSet::Key& key) {
          if (key.key > range.low() && taken++ < kKeysEach) keys.emplace_back(key.key);
        });
      }
      return ++transactions < kTransactions && keys.size() < enough;
    });
  }
  std::ranges::sort(keys);
  // They are keys at which the range can be cut: inside of it, and not where it begins.
  DEUT_CHECK(keys.empty() || (keys.front() > range.low() && range.Contains(keys.back())));
  return keys;
}

std::vector<std::string> EvenCuts(const std::vector<std::string>& candidates, size_t parts) {
  std::vector<std::string> cuts;
  const size_t pieces = std::min(parts, candidates.size() + 1);
  for (size_t i = 1; i < pieces; ++i) {
    const std::string& candidate = candidates[i * (candidates.size() + 1) / pieces - 1];
    if (cuts.empty() || cuts.back() < candidate) cuts.push_back(candidate);
  }
  return cuts;
}

std::vector<std::string> RandomCuts(std::vector<std::string> now, const std::vector<std::string>& candidates,
                                    size_t max_ranges, Random& random) {
  if (random.OneIn(8)) now.clear();
  // Out of eight: cuts that are kept, candidates that are added.
  const uint64_t kept = random.Between(2, 8), added = random.Between(0, 6);
  std::erase_if(now, [&](const std::string&) { return random.Below(8) >= kept; });
  for (const std::string& candidate : candidates) {
    if (random.Below(8) < added) now.push_back(candidate);
  }
  std::ranges::sort(now);
  now.erase(std::ranges::unique(now).begin(), now.end());
  if (now.size() < max_ranges) return now;
  std::vector<std::string> some;
  std::ranges::sample(now, std::back_inserter(some), static_cast<ptrdiff_t>(random.Below(max_ranges)), random);
  DEUT_CHECK(some.size() < max_ranges && std::ranges::is_sorted(some));
  return some;
}

}  // namespace deut::tc
