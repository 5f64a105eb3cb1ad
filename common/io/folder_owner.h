// The owner of a folder: the kind of component to which its files belong. A component claims its folder before it
// writes anything else there. So a component of another kind that is started on it by mistake is refused, and has
// changed nothing.
//
// The file OWNER, 24 bytes, little-endian:
//   0  8  "DEUTOWNR"
//   8  4  format version, 1
//  12  4  kind (FolderKind)
//  16  4  0
//  20  4  CRC-32C of bytes 0 to 19
// In every version, magic, version and checksum have these offsets; a later version may append more bytes.
// A folder without OWNER can be claimed if it is empty or holds only files of the claiming component. Such files are
// older than the file OWNER, or the component's first start crashed. The folder lost+found of a file system does not
// count.
// Use: call CheckFolder before the folder is created or locked, and ClaimFolder once it is locked.
// Thread-safety: functions; the lock excludes other processes. Errors name the folder:
//   WRONG_STATE       it belongs to another component, or holds files of no component; nothing was changed
//   CORRUPTION        OWNER is damaged; nothing was changed
//   VERSION_MISMATCH  OWNER has a format that this program does not know; nothing was changed
#ifndef COMMON_IO_FOLDER_OWNER_H_
#define COMMON_IO_FOLDER_OWNER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/io/storage.h"

namespace deut {

// The numbers are stored, so they are never reused.
enum class FolderKind : uint32_t {
  kTransactionComponent = 1,
  kDataComponent = 2,
  kSpill = 3,
};

struct FolderOwner {
  FolderKind kind;
  // True if a component of this kind makes a file or folder of this name.
  bool (*owns_name)(std::string_view name);
};

// OK if the folder does not exist, is empty, or belongs to the owner. Changes nothing.
Status CheckFolder(Storage& storage, const std::string& directory, const FolderOwner& owner);

// Calls CheckFolder, then makes OWNER durable if it is not there. REQUIRES: the folder exists and is locked by the
// caller.
Status ClaimFolder(Storage& storage, const std::string& directory, const FolderOwner& owner);

// True for the names that belong to no component and may be in the folder of any: OWNER, its temporary form,
// lost+found.
bool IsFolderOwnerName(std::string_view name);

std::string EncodeFolderOwner(FolderKind kind);
// `path` is for messages.
Result<FolderKind> DecodeFolderOwner(std::string_view bytes, const std::string& path);

}  // namespace deut

#endif  // COMMON_IO_FOLDER_OWNER_H_
