#include "dc/page_store/checkpoint_set.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/observe/log.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/page_store/checkpoint_format.h"
#include "dc/page_store/hex_name.h"

namespace deut::dc {
namespace {

// Parses the name of a checkpoint, or of one that is being written.
bool ParseAny(std::string_view name, CheckpointNumber* number, bool* temporary) {
  *temporary = name.ends_with(kTemporarySuffix);
  if (*temporary) name.remove_suffix(kTemporarySuffix.size());
  return ParseCheckpointName(name, number);
}

// The new suffix of a damaged file whose name would be taken for the checkpoint to fall back to.
constexpr std::string_view kDamagedSuffix = ".damaged";

Result<CheckpointStart> LookAt(Storage& storage, const std::string& path, DcId dc, CheckpointNumber number) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage.Open(path, {.direct = true}));
  AlignedBuffer bytes(kCheckpointBlockBytes);
  DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.data(), kCheckpointBlockBytes));
  const std::string_view first(bytes.data(), read);
  DEUT_ASSIGN_OR_RETURN(const CheckpointStart start, ClassifyCheckpointStart(first, path));
  if (start != CheckpointStart::kWhole) return start;
  const CheckpointOwner owner = OwnerOfCheckpointBlock(first);
  if ((owner.dc == dc && owner.checkpoint == number) || DEUT_OMITTED("V.refuse_foreign_checkpoint")) return start;
  return DEUT_ERROR(kCorruption, path, ": offset 0: a block of checkpoint ", owner.checkpoint.value,
                    " of data component ", owner.dc.value, ", not of ", number.value, " of ", dc.value,
                    "; files of two folders are mixed; nothing was changed");
}

}  // namespace

Result<std::vector<CheckpointNumber>> FindCheckpoints(Storage& storage, const std::string& directory) {
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage.List(directory));
  std::vector<CheckpointNumber> numbers;
  for (const std::string& name : names) {
    CheckpointNumber number;
    if (ParseCheckpointName(name, &number)) numbers.push_back(number);
  }
  std::ranges::sort(numbers, std::greater<>());
  return numbers;
}

CheckpointSet::CheckpointSet(Storage& storage, std::string directory)
    : storage_(storage), directory_(std::move(directory)) {}

Result<std::unique_ptr<CheckpointSet>> CheckpointSet::Open(Storage& storage, std::string directory, DcId dc,
                                                           CheckpointNumber opened,
                                                           const CheckpointLineage& ancestors) {
  std::unique_ptr<CheckpointSet> set(new CheckpointSet(storage, std::move(directory)));
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage.List(set->directory_));
  bool found_opened = opened.value == 0;
  CheckpointNumber highest = opened;
  for (const std::string& name : names) {
    CheckpointNumber number;
    bool temporary;
    if (!ParseAny(name, &number, &temporary)) continue;
    if (number.value == kMaxHexName) {
      return DEUT_ERROR(kCorruption, set->directory_, "/", name,
                        ": a checkpoint cannot have a later number than this one; ", "nothing was changed");
    }
    highest = std::max(highest, number);
    if (!temporary && opened.value == 0) {
      return DEUT_ERROR(kCorruption, set->directory_, "/", name,
                        ": there is a checkpoint, and none was opened; nothing was changed");
    }
    found_opened |= !temporary && number == opened;
    const std::string path = Concat(set->directory_, "/", name);
    DEUT_ASSIGN_OR_RETURN(const CheckpointStart start, LookAt(storage, path, dc, number));
    if (start == CheckpointStart::kUnknown || (start == CheckpointStart::kTorn && !temporary)) {
      LogError(path, ": the first block has an unknown format; the file is not changed");
      set->unrecognized_names_.insert(name);
    }
    if (!temporary && number > opened) set->passed_over_.push_back(Concat(set->directory_, "/", name));
  }
  if (!found_opened) {
    return DEUT_ERROR(kCorruption, set->directory_, "/", CheckpointName(opened), ": is not there any more");
  }
  // The name may not be durable yet: it may exist only because the machine has not stopped since the rename.
  if (opened.value != 0 && DEUT_STEP("X6.sync_opened_name")) {
    DEUT_RETURN_IF_ERROR(storage.SyncDirectory(set->directory_));
  }
  set->next_ = CheckpointNumber(highest.value + 1);
  set->newest_ = opened;
  set->newest_ancestors_ = ancestors;
  return set;
}

Status CheckpointSet::Complete(std::unique_ptr<CheckpointWriter> writer, CheckpointAncestor* file) {
  const CheckpointNumber number = writer->head().number;
  DEUT_CHECK(number == next_);
  DEUT_RETURN_IF_ERROR(writer->Finish());
  if (file != nullptr) *file = writer->AsAncestor();
  DEUT_IN_FLIGHT("dc.checkpoint_removal");
  DEUT_CHECK(number > newest_);
  previous_ = newest_;
  previous_ancestors_ = std::exchange(newest_ancestors_, writer->head().ancestors);
  newest_ = number;
  next_ = CheckpointNumber(number.value + 1);
  // Passed-over names go before Complete returns OK: RemoveDeadSegments follows, and removes segments that only they
  // name.
  DEUT_RETURN_IF_ERROR(RemovePassedOver());
  RemoveOld();
  return Status::Ok();
}

Status CheckpointSet::RemovePassedOver() {
  if (passed_over_.empty() || DEUT_OMITTED("X6.sync_passed_over")) return Status::Ok();
  for (const std::string& path : passed_over_) {
    const std::string name = path.substr(directory_.size() + 1);
    const bool understood = !unrecognized_names_.contains(name) || DEUT_OMITTED("V.keep_what_is_not_understood");
    const Status removed = understood ? storage_.Remove(path) : storage_.Rename(path, Concat(path, kDamagedSuffix));
    if (!removed.ok() && removed != ErrorCode::kNotFound) return removed;
  }
  DEUT_RETURN_IF_ERROR(storage_.SyncDirectory(directory_));
  passed_over_.clear();
  return Status::Ok();
}

bool CheckpointSet::IsKept(CheckpointNumber number) const {
  if (number == newest_ || number == previous_) return true;
  if (DEUT_OMITTED("checkpoint.keep_ancestors")) return false;
  const auto is_it = [number](const CheckpointAncestor& ancestor) { return ancestor.number == number; };
  return std::ranges::any_of(newest_ancestors_, is_it) || std::ranges::any_of(previous_ancestors_, is_it);
}

void CheckpointSet::RemoveOld() {
  const Result<std::vector<std::string>> names = storage_.List(directory_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    CheckpointNumber number;
    bool temporary;
    if (!ParseAny(name, &number, &temporary)) continue;
    if (!temporary && IsKept(number)) continue;
    if (unrecognized_names_.contains(name) && DEUT_STEP("V.keep_what_is_not_understood")) continue;
    (void)storage_.Remove(Concat(directory_, "/", name));  // the next checkpoint tries again
  }
}

}  // namespace deut::dc
