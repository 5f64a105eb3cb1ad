#include "dc/verify/data_directory.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/io/folder_owner.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/page_store/hot_page_list.h"

namespace deut::dc {
namespace {

constexpr std::string_view kStateName = "dc_state";
constexpr std::string_view kNewStateName = "dc_state.new";
constexpr std::string_view kPagesName = "pages";
// Directory in which an embedded store keeps its data component's files.
constexpr std::string_view kEmbeddedName = "dc";

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool IsTemporaryCheckpoint(std::string_view name) {
  CheckpointNumber number;
  if (!name.ends_with(kTemporarySuffix)) return false;
  name.remove_suffix(kTemporarySuffix.size());
  return ParseCheckpointName(name, &number);
}

}  // namespace

DataDirectory::DataDirectory(Storage& storage, const std::string& directory)
    : storage_(storage), pages_(Concat(directory, "/", kPagesName)), state_(DcState()) {}

Result<std::unique_ptr<DataDirectory>> DataDirectory::Open(Storage& storage, const std::string& directory) {
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage.List(directory));
  if (!Contains(names, kStateName) && !Contains(names, kPagesName)) {
    return DEUT_ERROR(
        kInvalidArgument, directory, ": there is neither \"", kStateName, "\" nor \"", kPagesName,
        "\": this is not the directory of a data component",
        Contains(names, kEmbeddedName) ? Concat("; that of an embedded store is ", directory, "/", kEmbeddedName) : "");
  }
  // The directory is locked before its files are read, so that nothing changes them meanwhile.
  std::unique_ptr<DataDirectory> opened(new DataDirectory(storage, directory));
  auto lock = storage.Lock(Concat(directory, "/", StateFile::kLockName));
  if (lock.status() == ErrorCode::kUnavailable) {
    return DEUT_ERROR(kUnavailable, lock.status().message(), "; stop the data component first");
  }
  DEUT_RETURN_IF_ERROR(lock.status());
  opened->lock_ = std::move(*lock);
  DEUT_RETURN_IF_ERROR(opened->Scan(directory));
  return opened;
}

Status DataDirectory::Scan(const std::string& directory) {
  const Result<std::optional<DcState>> state = StateFile(storage_, directory).Load();
  if (!state.ok()) {
    state_ = state.status();
  } else if (!state->has_value()) {
    state_ = DEUT_ERROR(kCorruption, directory, ": there is no ", kStateName);
  } else {
    state_ = **state;
  }
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_.List(directory));
  for (const std::string& name : names) {
    if (name == kStateName || name == kPagesName || name == StateFile::kLockName || IsFolderOwnerName(name)) continue;
    (name == kNewStateName ? left_over_ : foreign_files_).push_back(Concat(directory, "/", name));
  }
  if (Contains(names, kPagesName)) DEUT_RETURN_IF_ERROR(ScanPages());
  if (state_.ok()) {
    // Without a readable dc_state, checkpoints and segments are still checked against the owner that a segment names.
    dc_ = state_->dc;
  } else {
    FindOwner();
  }
  return Status::Ok();
}

Status DataDirectory::ScanPages() {
  DEUT_ASSIGN_OR_RETURN(checkpoints_, FindCheckpoints(storage_, pages_));
  DEUT_CHECK(std::ranges::is_sorted(checkpoints_, std::ranges::greater()));  // the first two are the kept ones
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_.List(pages_));
  for (const std::string& name : names) {
    SegmentFile segment;
    CheckpointNumber number;
    const std::string path = Concat(pages_, "/", name);
    if (ParseSegmentName(name, &segment.kind, &segment.number)) {
      segment.path = path;
      segments_.push_back(segment);
    } else if (name == kHotPagesName) {
      has_hot_pages_ = true;
    } else if (!ParseCheckpointName(name, &number)) {
      const bool temporary = IsTemporaryCheckpoint(name) || name == kHotPagesTemporaryName;
      (temporary ? left_over_ : foreign_files_).push_back(path);
    }
  }
  std::ranges::sort(segments_, [](const SegmentFile& a, const SegmentFile& b) {
    return std::pair(a.number, a.kind) < std::pair(b.number, b.kind);
  });
  return Status::Ok();
}

void DataDirectory::FindOwner() {
  AlignedBuffer block(kSegmentHeaderBytes);
  for (const SegmentFile& segment : segments_) {
    const auto file = storage_.Open(segment.path, {.direct = true});
    if (!file.ok()) continue;
    const Result<size_t> read = (*file)->Read(0, block.data(), block.size());
    if (!read.ok()) continue;
    const auto header = DecodeSegmentHeader(std::string_view(block.data(), *read), segment.path);
    if (!header.ok()) continue;
    dc_ = header->dc;
    return;
  }
}

}  // namespace deut::dc
