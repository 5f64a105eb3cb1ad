#include "common/io/disk_model.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace deut {
namespace {

constexpr uint64_t kBlockBytes = 4096;

uint64_t BlocksOf(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

std::string Normalize(const std::string& path) {
  std::string normal;
  for (const char c : path) {
    if (c != '/' || normal.empty() || normal.back() != '/') normal.push_back(c);
  }
  if (normal.ends_with('/')) normal.pop_back();
  return normal;
}

// Returns the parent of a normalized path; "" for names at the top.
std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

Status NoSuch(const char* operation, const std::string& path) {
  return DEUT_ERROR(kNotFound, operation, " ", path, ": no such file or directory");
}

}  // namespace

Status DiskModel::CheckParent(const std::string& path) const {
  const std::string parent = ParentOf(path);
  if (parent.empty()) return Status::Ok();
  const auto found = now_.find(parent);
  if (found == now_.end()) return NoSuch("look up", parent);
  if (found->second != nullptr) return DEUT_ERROR(kIoError, "look up ", parent, ": not a directory");
  return Status::Ok();
}

DiskModel::DiskModel(const DiskModel& other)
    : models_crashes_(other.models_crashes_),
      now_(other.now_),
      durable_(other.durable_),
      pending_(other.pending_),
      free_bytes_(other.free_bytes_) {
  std::map<const ModelFile*, std::shared_ptr<ModelFile>> copies;
  const auto copy = [&copies](std::shared_ptr<ModelFile>* file) {
    if (*file == nullptr) return;
    std::shared_ptr<ModelFile>& made = copies[file->get()];
    if (made == nullptr) made = std::make_shared<ModelFile>(**file);
    *file = made;
  };
  for (auto& [name, file] : now_) copy(&file);
  for (auto& [name, file] : durable_) copy(&file);
  for (Change& change : pending_) copy(&change.file);
}

Result<std::shared_ptr<ModelFile>> DiskModel::Open(const std::string& path, bool create, bool exclusive) {
  const std::string name = Normalize(path);
  DEUT_RETURN_IF_ERROR(CheckParent(name));
  const auto found = now_.find(name);
  if (found != now_.end()) {
    if (create && exclusive) return DEUT_ERROR(kAlreadyExists, "open ", path, ": file exists");
    if (found->second == nullptr) return DEUT_ERROR(kIoError, "open ", path, ": is a directory");
    return found->second;
  }
  if (!create) return NoSuch("open", path);
  auto file = std::make_shared<ModelFile>(models_crashes_);
  now_[name] = file;
  if (models_crashes_) pending_.push_back({Change::Kind::kCreate, name, "", file});
  return file;
}

Status DiskModel::CreateDirectory(const std::string& path) {
  const std::string name = Normalize(path);
  if (name.empty()) return Status::Ok();
  DEUT_RETURN_IF_ERROR(CreateDirectory(ParentOf(name)));
  const auto [entry, made] = now_.try_emplace(name, nullptr);
  if (entry->second != nullptr) return DEUT_ERROR(kIoError, "create directory ", path, ": not a directory");
  if (made) durable_[name] = nullptr;
  return Status::Ok();
}

Result<std::vector<std::string>> DiskModel::List(const std::string& path) const {
  const std::string name = Normalize(path);
  const auto found = now_.find(name);
  if (!name.empty() && found == now_.end()) return NoSuch("list", path);
  if (!name.empty() && found->second != nullptr) return DEUT_ERROR(kIoError, "list ", path, ": not a directory");
  std::vector<std::string> names;
  for (const auto& [entry, file] : now_) {
    if (ParentOf(entry) == name) names.push_back(entry.substr(entry.rfind('/') + 1));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status DiskModel::Rename(const std::string& from, const std::string& to) {
  const std::string source = Normalize(from), target = Normalize(to);
  const auto found = now_.find(source);
  if (found == now_.end()) return NoSuch("rename", from);
  if (found->second == nullptr) return DEUT_ERROR(kIoError, "rename ", from, ": renaming directories is not modelled");
  DEUT_RETURN_IF_ERROR(CheckParent(target));
  if (source == target) return Status::Ok();
  const auto replaced = now_.find(target);
  if (replaced != now_.end()) {
    if (replaced->second == nullptr) return DEUT_ERROR(kIoError, "rename ", from, " to ", to, ": is a directory");
    FreeSpace(replaced->second->size(), 0);
  }
  const Change change{Change::Kind::kRename, source, target, found->second};
  Apply(change, &now_);
  if (models_crashes_) pending_.push_back(change);
  return Status::Ok();
}

Status DiskModel::Remove(const std::string& path) {
  const std::string name = Normalize(path);
  const auto found = now_.find(name);
  if (found == now_.end()) return NoSuch("remove", path);
  if (found->second == nullptr) {
    const auto below = now_.lower_bound(name + "/");
    if (below != now_.end() && below->first.starts_with(name + "/")) {
      return DEUT_ERROR(kIoError, "remove ", path, ": directory not empty");
    }
  } else {
    FreeSpace(found->second->size(), 0);
  }
  const Change change{Change::Kind::kRemove, name, "", nullptr};
  Apply(change, &now_);
  if (models_crashes_) pending_.push_back(change);
  return Status::Ok();
}

void DiskModel::Apply(const Change& change, Names* names) {
  if (change.kind != Change::Kind::kCreate) names->erase(change.path);
  if (change.kind == Change::Kind::kCreate) (*names)[change.path] = change.file;
  if (change.kind == Change::Kind::kRename) (*names)[change.target] = change.file;
}

Status DiskModel::SyncDirectory(const std::string& path, bool covers) {
  const std::string name = Normalize(path);
  const auto found = now_.find(name);
  if (!name.empty() && (found == now_.end() || found->second != nullptr)) return NoSuch("sync of directory", path);
  if (!covers) return Status::Ok();
  // A change becomes durable together with the earlier changes of its names, in whatever directory those are.
  std::set<std::string> names;
  std::vector<bool> taken(pending_.size());
  for (size_t i = pending_.size(); i-- > 0;) {
    const Change& change = pending_[i];
    const bool renames = change.kind == Change::Kind::kRename;
    taken[i] = ParentOf(change.path) == name || (renames && ParentOf(change.target) == name) ||
               names.contains(change.path) || (renames && names.contains(change.target));
    if (!taken[i]) continue;
    names.insert(change.path);
    if (renames) names.insert(change.target);
  }
  std::vector<Change> left;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (taken[i]) {
      Apply(pending_[i], &durable_);
    } else {
      left.push_back(std::move(pending_[i]));
    }
  }
  pending_ = std::move(left);
  return Status::Ok();
}

bool DiskModel::Exists(const std::string& path) const {
  const std::string name = Normalize(path);
  return name.empty() || now_.contains(name);
}

bool DiskModel::AllocateSpace(const ModelFile& file, uint64_t bytes) {
  const uint64_t has = BlocksOf(file.size()), wants = BlocksOf(std::max(bytes, file.size()));
  if (wants - has > free_bytes_) return false;
  free_bytes_ -= wants - has;
  return true;
}

void DiskModel::FreeSpace(uint64_t old_size, uint64_t new_size) {
  free_bytes_ += BlocksOf(old_size) - BlocksOf(new_size);
}

uint64_t DiskModel::SpaceOfFiles() const {
  uint64_t bytes = 0;
  for (const auto& [name, file] : now_) {
    if (file != nullptr) bytes += BlocksOf(file->size());
  }
  return bytes;
}

void DiskModel::Crash(Random* random) {
  const uint64_t capacity = capacity_bytes();
  // Some crashes lose everything that is uncovered, some nothing, most a part.
  const uint32_t keep_in_1024 = std::array<uint32_t, 6>{0, 64, 512, 512, 960, 1024}[random->Below(6)];
  std::set<std::string> undone;
  for (const Change& change : pending_) {
    const bool renames = change.kind == Change::Kind::kRename;
    if (random->Below(1024) >= keep_in_1024 || undone.contains(change.path) ||
        (renames && undone.contains(change.target))) {
      undone.insert(change.path);
      if (renames) undone.insert(change.target);
    } else {
      Apply(change, &durable_);
    }
  }
  pending_.clear();
  now_ = durable_;
  for (auto& [name, file] : now_) {
    if (file != nullptr) file->Crash(random, keep_in_1024);
  }
  const uint64_t used = SpaceOfFiles();
  free_bytes_ = capacity > used ? capacity - used : 0;
}

}  // namespace deut
