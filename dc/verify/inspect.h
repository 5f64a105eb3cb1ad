// Inspect: prints the content of a data component's directory for a person. It shows the objects that a checkpoint
// names, the parts of a segment, the image of a page, or the levels of a table. It changes nothing
// (data_directory.h), and checks only the objects that it reads.
// Thread-safety: one thread. Output: lines, in pieces; lines before an error remain valid.
#ifndef DC_VERIFY_INSPECT_H_
#define DC_VERIFY_INSPECT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"

namespace deut::dc {

enum class Inspected : uint8_t { kDirectory, kCheckpoint, kSegment, kPage, kTable };

struct InspectRequest {
  Inspected what = Inspected::kDirectory;
  // Number of the segment, page, table or checkpoint. Checkpoint 0 is the newest readable one. Pages and tables are
  // also looked up in that one.
  uint64_t number = 0;
  // Formats keys and values; long ones are cut first.
  std::function<std::string(std::string_view bytes)> show;
};

// NOT_FOUND: the object does not exist. CORRUPTION: the object is damaged. Otherwise as VerifyDirectory.
Status Inspect(Storage& storage, Runtime& runtime, const std::string& directory, const InspectRequest& request,
               const std::function<void(std::string_view text)>& out);

}  // namespace deut::dc

#endif  // DC_VERIFY_INSPECT_H_
