#include "dc/server/state_file.h"

#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"

namespace deut::dc {
namespace {

constexpr std::string_view kName = "dc_state";
constexpr std::string_view kNewName = "dc_state.new";
constexpr std::string_view kMagic = "DEUTDCST";
constexpr uint32_t kVersion = 1;

constexpr size_t kVersionAt = 8;
constexpr size_t kBytesAt = 12;
constexpr size_t kDcAt = 16;
constexpr size_t kIncarnationAt = 24;
constexpr size_t kTcAt = 32;
constexpr size_t kEpochAt = 40;
constexpr size_t kNonceAt = 48;
constexpr size_t kChecksumAt = 56;
constexpr size_t kBytes = 60;

}  // namespace

std::string EncodeDcState(const DcState& state) {
  std::string bytes(kMagic);
  AppendU32(&bytes, kVersion);
  AppendU32(&bytes, kBytes);
  AppendU64(&bytes, state.dc.value);
  AppendU64(&bytes, state.incarnation.value);
  AppendU64(&bytes, state.fence.tc.value);
  AppendU64(&bytes, state.fence.epoch.value);
  AppendU64(&bytes, state.fence.nonce);
  AppendU32(&bytes, Crc32c(bytes));
  return bytes;
}

Result<DcState> DecodeDcState(std::string_view bytes, std::string_view path) {
  if (bytes.size() < kDcAt || bytes.substr(0, kMagic.size()) != kMagic) {
    return DEUT_ERROR(kCorruption, path, ": offset 0: not the state of a data component (", bytes.size(), " bytes)");
  }
  const uint32_t version = LoadU32(bytes.data() + kVersionAt);
  if (version != kVersion) {
    return DEUT_ERROR(kVersionMismatch, path, ": offset ", kVersionAt, ": format version ", version,
                      ", this program knows ", kVersion);
  }
  const uint32_t length = LoadU32(bytes.data() + kBytesAt);
  if (length != kBytes || bytes.size() != kBytes) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kBytesAt, ": ", bytes.size(), " bytes that say they are ", length,
                      ", not ", kBytes);
  }
  const uint32_t checksum = Crc32c(bytes.substr(0, kChecksumAt));
  if (checksum != LoadU32(bytes.data() + kChecksumAt)) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kChecksumAt, ": the checksum does not fit bytes 0 to ",
                      kChecksumAt);
  }
  DcState state;
  state.dc = DcId(LoadU64(bytes.data() + kDcAt));
  state.incarnation = DcIncarnation(LoadU64(bytes.data() + kIncarnationAt));
  state.fence.tc = TcId(LoadU64(bytes.data() + kTcAt));
  state.fence.epoch = TcEpoch(LoadU64(bytes.data() + kEpochAt));
  state.fence.nonce = LoadU64(bytes.data() + kNonceAt);
  return state;
}

StateFile::StateFile(Storage& storage, std::string directory)
    : storage_(storage),
      directory_(std::move(directory)),
      path_(Concat(directory_, "/", kName)),
      new_path_(Concat(directory_, "/", kNewName)) {}

Result<std::optional<DcState>> StateFile::Load() {
  DEUT_ASSIGN_OR_RETURN(const bool exists, storage_.Exists(path_));
  if (!exists) {
    // A crash in the very first start may have left a file on its way to become the state.
    DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_.List(directory_));
    for (const std::string& name : names) {
      if (name == kLockName || name == kNewName) continue;
      return DEUT_ERROR(kCorruption, directory_, ": there is \"", name, "\" but no ", kName,
                        "; this is not a data directory, or it is incomplete; nothing was changed");
    }
    return std::optional<DcState>();
  }
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage_.Open(path_, OpenOptions{}));
  std::string bytes(kBytes + 1, '\0');
  DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.data(), bytes.size()));
  bytes.resize(read);
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
  DEUT_RETURN_IF_ERROR(storage_.Rename(new_path_, path_));
  return storage_.SyncDirectory(directory_);
}

}  // namespace deut::dc
