// The files of a data folder as bytes, for tests that change them.
#ifndef DC_SERVER_FOLDER_FIXTURE_H_
#define DC_SERVER_FOLDER_FIXTURE_H_

#include <map>
#include <memory>
#include <string>

#include "common/io/storage.h"

namespace deut::dc {

// Where SmallServer has it.
constexpr char kServerFolder[] = "/data/dc";

using FolderFiles = std::map<std::string, std::string>;  // by path in the folder

// The files of the folder as it is now, without the lock file, which holds nothing but the number of a process.
FolderFiles ReadFolder(Storage& storage);
// A storage in memory that holds the folder. The folder of the pages is there if `with_pages`, else only with a file in it.
std::unique_ptr<Storage> StorageWith(const FolderFiles& files, bool with_pages = true);

}  // namespace deut::dc

#endif  // DC_SERVER_FOLDER_FIXTURE_H_
