#include "dc/server/state_file.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/folder_owner.h"

namespace deut::dc {
namespace {

constexpr std::string_view kName = "dc_state";
constexpr std::string_view kNewName = "dc_state.new";
constexpr std::string_view kMagic = "DEUTDCST";
constexpr uint32_t kVersion = 3;
constexpr uint32_t kVersionWithoutKept = 2;
constexpr uint32_t kVersionWithoutIncarnation = 1;

// Positions that are the same in every version.
constexpr size_t kVersionAt = 8;
constexpr size_t kBytesAt = 12;
constexpr size_t kPrefixBytes = 16;
constexpr size_t kChecksumBytes = sizeof(uint32_t);
constexpr size_t kMaxBytes = 4096;

constexpr size_t kDcAt = 16;
constexpr size_t kNumberAt = 24;
constexpr size_t kTcAt = 32;
constexpr size_t kEpochAt = 40;
constexpr size_t kNonceAt = 48;
constexpr size_t kIncarnationAt = 56;
constexpr size_t kOldestKeptAt = 64;
constexpr size_t kLogDurableAt = 72;
constexpr size_t kBytes = 84;
constexpr size_t kBytesWithoutKept = 68;
constexpr size_t kBytesWithoutIncarnation = 60;

// Checks the properties that every version has: magic, length, checksum. Returns the version.
Result<uint32_t> CheckFrame(std::string_view bytes, std::string_view path) {
  if (bytes.size() < kPrefixBytes + kChecksumBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return DEUT_ERROR(kCorruption, path, ": offset 0: not the state of a data component (", bytes.size(), " bytes)");
  }
  const uint32_t length = LoadU32(bytes.data() + kBytesAt);
  if (length != bytes.size()) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kBytesAt, ": the file is damaged: it has ", bytes.size(),
                      " bytes and states that it has ", length, "; nothing was changed");
  }
  const size_t checksum_at = bytes.size() - kChecksumBytes;
  if (Crc32c(bytes.substr(0, checksum_at)) != LoadU32(bytes.data() + checksum_at)) {
    return DEUT_ERROR(kCorruption, path, ": offset ", checksum_at, ": the checksum does not fit bytes 0 to ",
                      checksum_at);
  }
  return LoadU32(bytes.data() + kVersionAt);
}

Status OtherVersion(uint32_t version, std::string_view path) {
  return DEUT_ERROR(kVersionMismatch, path, ": offset ", kVersionAt, ": format version ", version,
                    ", this program knows ", kVersionWithoutIncarnation, " to ", kVersion, "; nothing was changed");
}

bool IsKnown(uint32_t version) { return version >= kVersionWithoutIncarnation && version <= kVersion; }

size_t BytesOf(uint32_t version) {
  if (version == kVersion) return kBytes;
  return version == kVersionWithoutKept ? kBytesWithoutKept : kBytesWithoutIncarnation;
}

}  // namespace

std::string EncodeDcState(const DcState& state) {
  std::string bytes(kMagic);
  AppendU32(&bytes, kVersion);
  AppendU32(&bytes, kBytes);
  AppendU64(&bytes, state.dc.value);
  AppendU64(&bytes, state.number.value);
  AppendU64(&bytes, state.fence.tc.value);
  AppendU64(&bytes, state.fence.epoch.value);
  AppendU64(&bytes, state.fence.nonce);
  AppendU64(&bytes, state.incarnation.value);
  AppendU64(&bytes, state.oldest_kept.value);
  AppendU64(&bytes, state.log_durable.value);
  AppendU32(&bytes, Crc32c(bytes));
  DEUT_CHECK(bytes.size() == kBytes);
  return bytes;
}

Result<DcState> DecodeDcState(std::string_view bytes, std::string_view path) {
  DEUT_ASSIGN_OR_RETURN(const uint32_t version, CheckFrame(bytes, path));
  if (!IsKnown(version)) return OtherVersion(version, path);
  const size_t expected = BytesOf(version);
  if (bytes.size() != expected) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kBytesAt, ": ", bytes.size(), " bytes, version ", version,
                      " has ", expected);
  }
  DcState state;
  state.dc = DcId(LoadU64(bytes.data() + kDcAt));
  state.number = IncarnationNumber(LoadU64(bytes.data() + kNumberAt));
  state.fence.tc = TcId(LoadU64(bytes.data() + kTcAt));
  state.fence.epoch = TcEpoch(LoadU64(bytes.data() + kEpochAt));
  state.fence.nonce = LoadU64(bytes.data() + kNonceAt);
  if (version >= kVersionWithoutKept) state.incarnation = DcIncarnation(LoadU64(bytes.data() + kIncarnationAt));
  if (version == kVersion) {
    state.oldest_kept = CheckpointNumber(LoadU64(bytes.data() + kOldestKeptAt));
    state.log_durable = Lsn(LoadU64(bytes.data() + kLogDurableAt));
  }
  return state;
}

StateFile::StateFile(Storage& storage, std::string directory)
    : storage_(storage),
      directory_(std::move(directory)),
      path_(Concat(directory_, "/", kName)),
      new_path_(Concat(directory_, "/", kNewName)) {}

Result<std::string> StateFile::ReadAll(const std::string& path) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage_.Open(path, OpenOptions{}));
  std::string bytes(kMaxBytes + 1, '\0');
  DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.data(), bytes.size()));
  bytes.resize(read);
  return bytes;
}

Result<std::optional<DcState>> StateFile::Load() {
  DEUT_ASSIGN_OR_RETURN(const bool on_its_way, storage_.Exists(new_path_));
  if (on_its_way) {
    // Save overwrites this file. A crash leaves a torn one; an intact one of another version belongs to another
    // program.
    DEUT_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(new_path_));
    const Result<uint32_t> version = CheckFrame(bytes, new_path_);
    if (version.ok() && !IsKnown(*version)) return OtherVersion(*version, new_path_);
  }
  DEUT_ASSIGN_OR_RETURN(const bool exists, storage_.Exists(path_));
  if (!exists) {
    // A crash in the very first start may have left a file that had not yet become the state.
    DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_.List(directory_));
    for (const std::string& name : names) {
      if (name == kLockName || name == kNewName || IsFolderOwnerName(name)) continue;
      return DEUT_ERROR(kCorruption, directory_, ": there is \"", name, "\" but no ", kName,
                        "; this is not a data directory, or it is incomplete; nothing was changed");
    }
    return std::optional<DcState>();
  }
  DEUT_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(path_));
  DEUT_ASSIGN_OR_RETURN(const DcState state, DecodeDcState(bytes, path_));
  return std::optional<DcState>(state);
}

Status StateFile::Save(const DcState& state) {
  const std::string bytes = EncodeDcState(state);
  {
    OpenOptions options;
    options.create = true;
    options.writable = true;
    DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage_.Open(new_path_, options));
    DEUT_RETURN_IF_ERROR(file->Truncate(0));
    DEUT_RETURN_IF_ERROR(file->Write(0, bytes.data(), bytes.size()));
    DEUT_RETURN_IF_ERROR(file->Sync());
  }
  // The new file is synced before the rename, and the directory after it. So a crash leaves the old state or the new
  // one, never a part.
  DEUT_RETURN_IF_ERROR(storage_.Rename(new_path_, path_));
  return storage_.SyncDirectory(directory_);
}

}  // namespace deut::dc
