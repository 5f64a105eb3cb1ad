// FolderFiles: the files of a data folder as bytes, for tests that change them.
#ifndef DC_SERVER_FOLDER_FIXTURE_H_
#define DC_SERVER_FOLDER_FIXTURE_H_

#include <map>
#include <memory>
#include <string>

#include "common/io/storage.h"

namespace deut::dc {

// Path of SmallServer's data folder.
constexpr char kServerFolder[] = "/data/dc";

using FolderFiles = std::map<std::string, std::string>;  // content by path in the folder

// Returns the current files of the folder, without the lock file, which holds only the number of a process.
FolderFiles ReadFolder(Storage& storage);
// Returns a storage in memory that holds the folder. The directory of the pages exists if `with_pages`, else only if
// it has a file.
std::unique_ptr<Storage> StorageWith(const FolderFiles& files, bool with_pages = true);

}  // namespace deut::dc

#endif  // DC_SERVER_FOLDER_FIXTURE_H_
