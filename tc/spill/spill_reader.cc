#include "tc/spill/spill_reader.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "common/base/check.h"
#include "common/runtime/blocking_hook.h"

namespace deut::tc {
namespace {

using Versions = std::vector<SpilledVersion>;

auto KeyOf(const SpilledVersion& version) { return std::tuple(version.table, version.key); }

}  // namespace

Result<std::shared_ptr<const SpillBlock>> SpillReader::Block(size_t run, size_t number) {
  Kept& kept = blocks_[run];
  if (kept.block == nullptr || kept.number != number) {
    BlockingHook::NotifyBlocking();  // reading a file is a wait that the runtime does not see
    DEUT_ASSIGN_OR_RETURN(kept.block, runs_[run]->Read(number));
    kept.number = number;
  }
  return kept.block;
}

Result<std::optional<SpilledVersion>> SpillReader::Find(TableId table, std::string_view key, Timestamp reader) {
  DEUT_DCHECK(reader > Timestamp{0});  // no transaction has timestamp 0
  std::optional<SpilledVersion> found;
  // A search key: the newest version that the reader may see.
  const SpilledVersion wanted{
      .table = table, .key = key, .timestamp = Timestamp{reader.value - 1}, .sequence = UINT32_MAX};
  const uint64_t hash = SpillFilter::Hash(table, key);
  // From the latest run to the earliest, because the newest version is nearly always in the latest run that has the key. It need not be: an update
  // below an open transaction's version is spilled later than updates that are newer. So a run ends the search only for runs whose versions are all
  // older than the version found.
  for (size_t run = runs_.size(); run-- > 0;) {
    if (runs_[run]->oldest() >= reader || (found && runs_[run]->newest() < found->timestamp)) continue;
    if (!runs_[run]->MayHave(hash)) continue;
    for (size_t b = runs_[run]->FirstBlock(table, key); b < runs_[run]->blocks(); ++b) {
      DEUT_ASSIGN_OR_RETURN(const std::shared_ptr<const SpillBlock> block, Block(run, b));
      const Versions& versions = block->versions();
      const auto it = std::ranges::lower_bound(
          versions, wanted, [](const SpilledVersion& x, const SpilledVersion& y) { return SpillOrder(x, y) < 0; });
      if (it == versions.end()) continue;
      if (KeyOf(*it) == KeyOf(wanted) && (!found || it->version() > found->version())) {
        found = *it;
        found->key = key;
      }
      break;
    }
  }
  return found;
}

Status SpillReader::Gather(const Bounds& bounds, absl::FunctionRef<void(std::string_view)> visit) {
  for (size_t run = 0; run < runs_.size(); ++run) {
    // No version of the run would be seen.
    if (runs_[run]->oldest() >= bounds.reader || runs_[run]->span().last.commit < bounds.applied) continue;
    DEUT_RETURN_IF_ERROR(bounds.ascending ? GatherUp(run, bounds, visit) : GatherDown(run, bounds, visit));
  }
  return Status::Ok();
}

namespace {

bool Seen(const SpilledVersion& version, const SpillReader::Bounds& bounds) {
  return version.timestamp < bounds.reader && version.commit >= bounds.applied;
}
bool Below(const SpilledVersion& version, const SpillReader::Bounds& bounds) {
  return KeyOf(version) < std::tuple(bounds.table, bounds.low);
}
bool Above(const SpilledVersion& version, const SpillReader::Bounds& bounds) {
  if (version.table != bounds.table) return version.table > bounds.table;
  return !bounds.high.empty() && version.key >= bounds.high;
}

}  // namespace

Status SpillReader::GatherUp(size_t run, const Bounds& bounds, absl::FunctionRef<void(std::string_view)> visit) {
  std::optional<std::string> last;
  size_t left = bounds.most;
  for (size_t b = runs_[run]->FirstBlock(bounds.table, bounds.low); b < runs_[run]->blocks() && left > 0; ++b) {
    DEUT_ASSIGN_OR_RETURN(const std::shared_ptr<const SpillBlock> block, Block(run, b));
    for (const SpilledVersion& version : block->versions()) {
      if (Below(version, bounds) || !Seen(version, bounds)) continue;
      if (Above(version, bounds) || left == 0) return Status::Ok();
      if (last == version.key) continue;
      last = version.key;
      visit(version.key);
      --left;
    }
    if (Above(block->versions().back(), bounds)) return Status::Ok();
  }
  return Status::Ok();
}

Status SpillReader::GatherDown(size_t run, const Bounds& bounds, absl::FunctionRef<void(std::string_view)> visit) {
  std::optional<std::string> last;
  size_t left = bounds.most;
  const TableId end_table = bounds.high.empty() ? TableId{bounds.table.value + 1} : bounds.table;
  // The first block that may have the upper bound, or keys above it, is the last one that may have keys below it: the
  // next block begins at or above the bound. No table is behind that of the largest id.
  const bool to_the_end = bounds.high.empty() && end_table.value == 0;
  size_t b = to_the_end ? runs_[run]->blocks() : runs_[run]->FirstBlock(end_table, bounds.high) + 1;
  while (b-- > 0 && left > 0) {
    DEUT_ASSIGN_OR_RETURN(const std::shared_ptr<const SpillBlock> block, Block(run, b));
    const Versions& versions = block->versions();
    for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
      if (Above(*it, bounds) || !Seen(*it, bounds)) continue;
      if (Below(*it, bounds) || left == 0) return Status::Ok();
      if (last == it->key) continue;
      last = it->key;
      visit(it->key);
      --left;
    }
    if (Below(versions.front(), bounds)) return Status::Ok();
  }
  return Status::Ok();
}

}  // namespace deut::tc
