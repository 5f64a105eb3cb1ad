#include "common/io/folder_owner.h"

#include <memory>
#include <optional>
#include <vector>

#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"

namespace deut {
namespace {

constexpr std::string_view kName = "OWNER";
constexpr std::string_view kNewName = "OWNER.new";
constexpr std::string_view kLostAndFound = "lost+found";
constexpr std::string_view kMagic = "DEUTOWNR";
constexpr uint32_t kVersion = 1;
constexpr size_t kVersionAt = 8;
constexpr size_t kKindAt = 12;
constexpr size_t kChecksumAt = 20;
constexpr size_t kBytes = 24;

std::string_view NameOf(FolderKind kind) {
  switch (kind) {
    case FolderKind::kTransactionComponent:
      return "a transaction component (tcd)";
    case FolderKind::kDataComponent:
      return "a data component (dcd)";
    case FolderKind::kSpill:
      return "the spilled updates of a transaction component (--spill_dir)";
  }
  return "an unknown component";
}

// Returns no value if there is no OWNER.
Result<std::optional<FolderKind>> Find(Storage& storage, const std::string& directory) {
  const std::string path = Concat(directory, "/", kName);
  DEUT_ASSIGN_OR_RETURN(const bool exists, storage.Exists(path));
  if (!exists) return std::optional<FolderKind>();
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage.Open(path, OpenOptions{}));
  std::string bytes(kBytes + 1, '\0');
  DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.data(), bytes.size()));
  bytes.resize(read);
  DEUT_ASSIGN_OR_RETURN(const FolderKind kind, DecodeFolderOwner(bytes, path));
  return std::optional<FolderKind>(kind);
}

// Does the work of CheckFolder. Sets *claimed if OWNER is there.
Status Check(Storage& storage, const std::string& directory, const FolderOwner& owner, bool* claimed) {
  *claimed = false;
  DEUT_ASSIGN_OR_RETURN(const bool exists, storage.Exists(directory));
  if (!exists) return Status::Ok();
  DEUT_ASSIGN_OR_RETURN(const std::optional<FolderKind> found, Find(storage, directory));
  if (found.has_value()) {
    *claimed = true;
    if (*found == owner.kind) return Status::Ok();
    return DEUT_ERROR(kWrongState, directory, " is the folder of ", NameOf(*found), ", not of ", NameOf(owner.kind),
                      "; choose another one; nothing was changed");
  }
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage.List(directory));
  for (const std::string& name : names) {
    if (IsFolderOwnerName(name) || owner.owns_name(name)) continue;
    return DEUT_ERROR(kWrongState, directory, " is not empty, and holds \"", name, "\", which is no file of ",
                      NameOf(owner.kind), "; choose an empty folder, or one of its own; nothing was changed");
  }
  return Status::Ok();
}

}  // namespace

bool IsFolderOwnerName(std::string_view name) { return name == kName || name == kNewName || name == kLostAndFound; }

std::string EncodeFolderOwner(FolderKind kind) {
  std::string bytes(kMagic);
  AppendU32(&bytes, kVersion);
  AppendU32(&bytes, static_cast<uint32_t>(kind));
  AppendU32(&bytes, 0);
  AppendU32(&bytes, Crc32c(bytes));
  return bytes;
}

Result<FolderKind> DecodeFolderOwner(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return DEUT_ERROR(kCorruption, path, ": offset 0: does not name the owner of a folder (", bytes.size(),
                      " bytes); nothing was changed");
  }
  // Verifies the checksum before the version, because damage may look like another version. It has the same offset in
  // every version.
  if (Crc32c(bytes.substr(0, kChecksumAt)) != LoadU32(bytes.data() + kChecksumAt)) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kChecksumAt, ": the checksum does not fit; nothing was changed");
  }
  const uint32_t version = LoadU32(bytes.data() + kVersionAt);
  if (version != kVersion) {
    return DEUT_ERROR(kVersionMismatch, path, ": format version ", version, ", this program knows ", kVersion,
                      "; nothing was changed");
  }
  if (bytes.size() != kBytes) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kBytes, ": the file goes on; nothing was changed");
  }
  const uint32_t kind = LoadU32(bytes.data() + kKindAt);
  if (kind < 1 || kind > 3) {
    return DEUT_ERROR(kVersionMismatch, path, ": offset ", kKindAt, ": kind ", kind, " is not known to this program",
                      "; nothing was changed");
  }
  return static_cast<FolderKind>(kind);
}

Status CheckFolder(Storage& storage, const std::string& directory, const FolderOwner& owner) {
  bool claimed = false;
  return Check(storage, directory, owner, &claimed);
}

Status ClaimFolder(Storage& storage, const std::string& directory, const FolderOwner& owner) {
  // Checks again under the lock, because another component may have claimed the folder since CheckFolder.
  bool claimed = false;
  DEUT_RETURN_IF_ERROR(Check(storage, directory, owner, &claimed));
  if (claimed) return Status::Ok();
  const std::string bytes = EncodeFolderOwner(owner.kind);
  const std::string path = Concat(directory, "/", kName), new_path = Concat(directory, "/", kNewName);
  {
    OpenOptions options;
    options.create = true;
    options.writable = true;
    DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage.Open(new_path, options));
    DEUT_RETURN_IF_ERROR(file->Truncate(0));
    DEUT_RETURN_IF_ERROR(file->Write(0, bytes.data(), bytes.size()));
    DEUT_RETURN_IF_ERROR(file->Sync());
  }
  DEUT_RETURN_IF_ERROR(storage.Rename(new_path, path));
  return storage.SyncDirectory(directory);
}

}  // namespace deut
