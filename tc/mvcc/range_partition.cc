#include "tc/mvcc/range_partition.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/txn/write_set.h"

namespace deut::tc {
namespace {

// A list of copied postings that is not in any range yet. Frees them unless Fill has installed them.
class Copies {
 public:
  explicit Copies(ReclamationDomain& domain) : domain_(domain) {}
  ~Copies() {
    while (first_ != nullptr) {
      Posting* const posting = first_;
      first_ = posting->next.load(std::memory_order_relaxed);
      posting->transaction->DropReference(domain_);
      delete posting;
    }
  }

  void Add(const Posting& of) {
    if (!of.transaction->TryAddReference()) return;  // the transaction is collected, and the original is unlinked
    auto* posting = new Posting(of.transaction, of.origin);
    posting->next.store(first_, std::memory_order_relaxed);
    first_ = posting;
    ++count_;
  }
  void Fill(Range& range) {
    if (range.TryFill(first_, count_)) first_ = nullptr;
  }

 private:
  ReclamationDomain& domain_;
  Posting* first_ = nullptr;
  uint64_t count_ = 0;
};

// The map and the ranges that a change has replaced: destroyed when no thread can see them any more.
struct Replaced {
  ReclamationDomain& domain;
  std::unique_ptr<const RangeMap> map;
  std::vector<Range*> ranges;

  ~Replaced() {
    ReclamationDomain::Guard guard(domain);
    for (Range* range : ranges) {
      range->DropPostings(domain);
      range->DropReference(domain);
    }
  }
};

}  // namespace

struct RangePartition::Change {
  struct Step {
    std::span<Range* const> old;  // neighbours in the old map
    std::vector<Range*> made;
  };
  ReclamationDomain& domain;
  const RangeMap* before = nullptr;
  const RangeMap* after = nullptr;
  std::vector<Step> steps = {};

  // True if the new range `to` needs a copy of this posting.
  static bool Copied(const Posting& posting, const Range& to) {
    const TransactionRecord& record = *posting.transaction;
    if (record.collected()) return false;
    if (!posting.origin->Overlaps(to) && DEUT_STEP("P.origin")) return false;
    switch (record.status()) {
      case TransactionStatus::kAborted:
        return false;
      case TransactionStatus::kActive:
      case TransactionStatus::kCommitting:
        return DEUT_STEP("P.copy_undecided");
      case TransactionStatus::kCommitted:
        break;
    }
    const WriteSet* const writes = record.write_set();
    if (writes == nullptr) return false;                // it was collected meanwhile, or has written nothing
    if (writes->size() > WriteSet::kTail) return true;  // checking each key takes long; a needless copy is harmless
    bool wrote = false;
    writes->ForEach([&](const WriteItem& item) { wrote = wrote || to.Contains(item.key); });
    return wrote;
  }

  void Fill(const Step& step, Range& to) const {
    Copies copies(domain);
    absl::flat_hash_set<std::pair<const TransactionRecord*, const Range*>> seen;
    for (const Range* from : step.old) {
      for (const Posting* p = from->first_posting(); p != nullptr; p = p->next.load(std::memory_order_seq_cst)) {
        if (DEUT_OMITTED("P.postings") || !Copied(*p, to)) continue;
        if (seen.emplace(p->transaction, p->origin).second) copies.Add(*p);
      }
      if (DEUT_OMITTED("P.all_overlapped")) break;
    }
    copies.Fill(to);
  }
};

RangePartition::RangePartition(std::shared_ptr<std::atomic<uint64_t>> copies)
    : copies_(std::move(copies)), map_(new RangeMap({new Range("", "", Timestamp{0}, this, copies_)})) {}

RangePartition::~RangePartition() {
  DEUT_CHECK(change_.load(std::memory_order_relaxed) == nullptr);
  const std::unique_ptr<const RangeMap> map(map_.load(std::memory_order_relaxed));
  for (Range* range : map->ranges()) delete range;
}

bool RangePartition::Holds(const Range& range) const {
  DEUT_DCHECK(range.partition() == this);  // else the key space is another one
  const RangeMap& now = map();
  return &now.at(now.IndexOf(range.low())) == &range;
}

void RangePartition::FinishChange() const {
  const Change* const change = change_.load(std::memory_order_seq_cst);
  if (change != nullptr && DEUT_STEP("P.help")) Finish(*change);
}

void RangePartition::Finish(const Change& change) const {
  // If the map is still the old one, it was not swung before this thread took its guard, so the old ranges stay valid under the guard.
  if (map_.load(std::memory_order_seq_cst) != change.before) return;
  for (const Change::Step& step : change.steps) {
    Timestamp last_read;
    for (Range* range : step.old) {
      // After Seal no raise succeeds, and after CloseToPosts no post. So last_read is final, and no posting is missed, when they are read below.
      range->Seal();
      DEUT_POINT("partition.sealed");
      range->CloseToPosts();
      if (DEUT_STEP("P.last_read")) last_read = std::max(last_read, range->last_read());
    }
    DEUT_POINT("partition.marked");
    for (Range* made : step.made) {
      while (made->unfilled()) {  // a filled range has its last_read, too
        (void)made->RaiseLastRead(last_read);
        change.Fill(step, *made);
      }
      // Whichever thread has filled it: it raised the range to the sealed values before that.
      DEUT_DCHECK(made->last_read() >= last_read);
    }
  }
  DEUT_POINT("partition.before_swing");
  if (DEUT_CAS_FAILS("partition.swing.cas")) return Finish(change);
  const RangeMap* before = change.before;
  map_.compare_exchange_strong(before, change.after, std::memory_order_seq_cst);
}

Duration RangePartition::Replace(Runtime& runtime, ReclamationDomain& domain, const std::vector<Place>& places) {
  if (places.empty()) return Duration{0};
  ReclamationDomain::Guard guard(domain);
  const RangeMap& before = map();
  auto change = std::make_unique<Change>(Change{.domain = domain, .before = &before});
  std::vector<Range*> ranges, old;
  size_t next = 0;
  for (const Place& place : places) {
    DEUT_CHECK(place.count > 0 && place.first >= next && place.first + place.count <= before.size());
    ranges.insert(ranges.end(), before.ranges().begin() + static_cast<ptrdiff_t>(next),
                  before.ranges().begin() + static_cast<ptrdiff_t>(place.first));
    next = place.first + place.count;
    Change::Step& step = change->steps.emplace_back();
    step.old = std::span<Range* const>(before.ranges()).subspan(place.first, place.count);
    old.insert(old.end(), step.old.begin(), step.old.end());
    std::string low = step.old.front()->low();
    const std::string& end = step.old.back()->high();
    for (size_t i = 0; i <= place.cuts.size(); ++i) {
      const std::string high = i < place.cuts.size() ? place.cuts[i] : end;
      DEUT_CHECK(high.empty() ? i == place.cuts.size() : low < high);
      step.made.push_back(new Range(std::move(low), high, Timestamp{0}, this, copies_));
      step.made.back()->StartUnfilled();
      low = high;
    }
    ranges.insert(ranges.end(), step.made.begin(), step.made.end());
  }
  ranges.insert(ranges.end(), before.ranges().begin() + static_cast<ptrdiff_t>(next), before.ranges().end());
  change->after = new RangeMap(std::move(ranges));

  const MonotonicTime begin = runtime.Now();
  DEUT_CHECK(change_.exchange(change.get(), std::memory_order_seq_cst) == nullptr);
  DEUT_POINT("partition.published");
  Finish(*change);
  DEUT_CHECK(map_.load(std::memory_order_seq_cst) == change->after);  // no other change can have begun
  const Duration window = runtime.Now() - begin;
  // Withdrawn before it is retired: a thread that has loaded it holds a guard.
  change_.store(nullptr, std::memory_order_seq_cst);
  domain.RetireObject(change.release());
  const size_t bytes = sizeof(RangeMap) + before.size() * sizeof(Range*) + old.size() * sizeof(Range);
  domain.RetireObject(new Replaced{domain, std::unique_ptr<const RangeMap>(&before), std::move(old)}, bytes);
  return window;
}

// Goes from the last place to the first, so that the indexes of the remaining places stay correct.
Duration RangePartition::ReplaceInSteps(Runtime& runtime, ReclamationDomain& domain, std::vector<Place> places) {
  Duration longest{0};
  std::vector<Place> now;
  const auto replace = [&] {
    std::reverse(now.begin(), now.end());
    longest = std::max(longest, Replace(runtime, domain, std::exchange(now, {})));
  };
  size_t copies = 0;
  for (; !places.empty(); places.pop_back()) {
    Place& place = places.back();
    size_t postings = 0;
    {
      ReclamationDomain::Guard guard(domain);
      for (size_t i = 0; i < place.count; ++i) postings += map().at(place.first + i).posting_count();
    }
    postings *= place.cuts.size() + 1;
    if (copies + postings > kMaxCopiesPerChange || now.size() >= kMaxPlacesPerChange) {
      replace();
      copies = 0;
    }
    copies += postings;
    now.push_back(std::move(place));
  }
  replace();
  return longest;
}

std::vector<RangePartition::Place> RangePartition::Splits(ReclamationDomain& domain,
                                                          const std::vector<std::string>& cuts) const {
  std::vector<Place> places;
  ReclamationDomain::Guard guard(domain);
  const RangeMap& now = map();
  size_t range = 0;
  for (const std::string& cut : cuts) {
    while (!now.at(range).Contains(cut)) ++range;
    if (now.at(range).low() == cut) continue;
    if (places.empty() || places.back().first != range) places.push_back({.first = range});
    places.back().cuts.push_back(cut);
  }
  for (Place& place : places) {
    if (now.at(place.first).posting_count() * (place.cuts.size() + 1) <= kMaxCopiesPerChange) continue;
    std::string middle = std::move(place.cuts[place.cuts.size() / 2]);
    place.cuts.clear();
    place.cuts.push_back(std::move(middle));
  }
  return places;
}

Duration RangePartition::Recut(Runtime& runtime, ReclamationDomain& domain, const std::vector<std::string>& cuts) {
  DEUT_CHECK(cuts.empty() || !cuts.front().empty());
  DEUT_CHECK(std::ranges::adjacent_find(cuts, std::greater_equal<>()) == cuts.end());
  Duration splitting{0};
  // A range with many postings is halved repeatedly. Its parts have fewer postings, so no thread waits for copies of more than one list.
  for (std::vector<Place> places; !(places = Splits(domain, cuts)).empty();) {
    splitting = std::max(splitting, ReplaceInSteps(runtime, domain, std::move(places)));
  }
  std::vector<Place> places;
  {
    ReclamationDomain::Guard guard(domain);
    const RangeMap& now = map();
    for (size_t i = 1; i < now.size(); ++i) {
      if (std::binary_search(cuts.begin(), cuts.end(), now.at(i).low())) continue;
      if (!places.empty() && places.back().first + places.back().count == i) {
        ++places.back().count;
      } else {
        places.push_back({.first = i - 1, .count = 2});
      }
    }
  }
  const Duration merging = ReplaceInSteps(runtime, domain, std::move(places));
  ReclamationDomain::Guard guard(domain);
  DEUT_CHECK(map().size() == cuts.size() + 1);
  return std::max(splitting, merging);
}

}  // namespace deut::tc
