#include "tc/spill/spilled_run.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/base/check.h"

namespace deut::tc {
namespace {

constexpr size_t kWriteBytes = size_t{256} << 10;

// A string that sorts by table, then by key.
std::string WithTable(TableId table, std::string_view key) {
  std::string both;
  for (int shift = 24; shift >= 0; shift -= 8) both.push_back(static_cast<char>(table.value >> shift));
  return both.append(key);
}

}  // namespace

Result<SpilledRun::Builder> SpilledRun::Builder::Create(Storage& storage, const std::string& path,
                                                        const Options& options) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                        storage.Open(path, {.create = true, .exclusive = true, .writable = true}));
  return Builder(std::unique_ptr<SpilledRun>(new SpilledRun(storage, std::move(file), options)), options.written_bytes);
}

Status SpilledRun::Builder::Add(const SpilledVersion& version) {
  std::string key = WithTable(version.table, version.key);
  const bool same_key = key == last_key_ && !empty();
  if (same_key && version.version() == last_version_) return Status::Ok();
  if (block_.bytes() >= kBlockBytes) DEUT_RETURN_IF_ERROR(EndBlock());
  if (block_.empty()) {
    // The separator is a prefix of the block's first key. It is greater than the last key of the block before, unless the keys are equal.
    const auto [mine, theirs] = std::ranges::mismatch(key, last_key_);
    const auto bytes = static_cast<size_t>(mine - key.begin()) + (mine == key.end() ? 0 : 1);
    run_->separators_.append(key, 0, bytes);
    run_->separator_ends_.push_back(run_->separators_.size());
    run_->offsets_.push_back(run_->file_bytes_);
  }
  block_.Add(version);
  if (!same_key && !run_->filter_.empty()) run_->filter_.Add(SpillFilter::Hash(version.table, version.key));
  run_->oldest_ = std::min(run_->oldest_, version.timestamp);
  run_->newest_ = std::max(run_->newest_, version.timestamp);
  last_key_ = std::move(key);
  last_version_ = version.version();
  ++run_->versions_;
  return Status::Ok();
}

Status SpilledRun::Builder::EndBlock() {
  const std::string block = block_.Finish(run_->file_bytes_);
  run_->file_bytes_ += block.size();
  unwritten_ += block;
  return unwritten_.size() >= kWriteBytes ? Write() : Status::Ok();
}

Status SpilledRun::Builder::Write() {
  // The offsets in the index are where the blocks get to in the file.
  DEUT_CHECK(written_bytes_ + unwritten_.size() == run_->file_bytes_);
  DEUT_RETURN_IF_ERROR(run_->file_->Write(written_bytes_, unwritten_.data(), unwritten_.size()));
  written_bytes_ += unwritten_.size();
  if (counted_ != nullptr) counted_->fetch_add(unwritten_.size(), std::memory_order_relaxed);
  unwritten_.clear();
  return Status::Ok();
}

Result<std::shared_ptr<const SpilledRun>> SpilledRun::Builder::Finish(CommitSpan span) {
  DEUT_CHECK(!empty());
  DEUT_CHECK(span.first_commit <= span.last.commit);
  DEUT_RETURN_IF_ERROR(EndBlock());
  DEUT_RETURN_IF_ERROR(Write());
  DEUT_CHECK(unwritten_.empty() && run_->offsets_.back() < written_bytes_);
  run_->span_ = span;
  run_->offsets_.shrink_to_fit();
  run_->separators_.shrink_to_fit();
  run_->separator_ends_.shrink_to_fit();
  return std::shared_ptr<const SpilledRun>(std::move(run_));
}

SpilledRun::~SpilledRun() {
  const std::string path = file_->path();
  file_.reset();
  // If the removal fails, the next start of the TC removes the file.
  (void)storage_.Remove(path);
}

size_t SpilledRun::memory_bytes() const {
  return sizeof(*this) + separators_.capacity() + offsets_.capacity() * sizeof(uint64_t) +
         separator_ends_.capacity() * sizeof(uint64_t) + filter_bytes();
}

std::string_view SpilledRun::separator(size_t block) const {
  const uint64_t begin = block == 0 ? 0 : separator_ends_[block - 1];
  return std::string_view(separators_).substr(begin, separator_ends_[block] - begin);
}

size_t SpilledRun::FirstBlock(TableId table, std::string_view key) const {
  const std::string wanted = WithTable(table, key);
  // If the key equals a block's separator, its versions may begin in the block before.
  const auto all = std::views::iota(size_t{0}, blocks());
  const auto it =
      std::ranges::lower_bound(all, std::string_view(wanted), {}, [this](size_t b) { return separator(b); });
  const auto found = static_cast<size_t>(it - all.begin());
  return found == 0 ? 0 : found - 1;
}

Result<std::shared_ptr<const SpillBlock>> SpilledRun::Read(size_t block) const {
  DEUT_DCHECK(block < blocks());
  const uint64_t offset = offsets_[block];
  const uint64_t end = block + 1 < blocks() ? offsets_[block + 1] : file_bytes_;
  std::string bytes(end - offset, '\0');
  DEUT_ASSIGN_OR_RETURN(const size_t read, file_->Read(offset, bytes.data(), bytes.size()));
  bytes.resize(read);
  Result<SpillBlock> decoded = SpillBlock::Decode(std::move(bytes), file_->path(), offset);
  if (!decoded.ok()) damaged_.store(true, std::memory_order_relaxed);
  DEUT_RETURN_IF_ERROR(decoded.status());
  return std::make_shared<const SpillBlock>(*std::move(decoded));
}

}  // namespace deut::tc
