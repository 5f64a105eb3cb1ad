#include <memory>

#include "common/io/model_storage.h"
#include "common/io/storage.h"

namespace deut {

std::unique_ptr<Storage> NewMemoryStorage(Runtime& runtime) {
  return NewModelStorage(std::make_shared<ModelDisk>(runtime, /*is_faulty=*/false, /*seed=*/0));
}

}  // namespace deut
