// Inspect: looks at what lies in a data component's directory, for a person: what a checkpoint names, the parts of a segment, the image of
// a page, the levels of a table. Changes nothing (data_directory.h). What is looked at is checked as it is read, and no more than that.
// Thread-safety: one thread. Output: lines, in pieces; what came before an error stands.
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
  // Of the segment, page or table. Of the checkpoint; 0: the newest that can be read, which is also where pages and tables are looked up.
  uint64_t number = 0;
  // How keys and values are shown; long ones are cut before.
  std::function<std::string(std::string_view bytes)> show;
};

// NOT_FOUND: there is no such thing; CORRUPTION: what is asked for is damaged; otherwise as VerifyDirectory.
Status Inspect(Storage& storage, Runtime& runtime, const std::string& directory, const InspectRequest& request,
               const std::function<void(std::string_view text)>& out);

}  // namespace deut::dc

#endif  // DC_VERIFY_INSPECT_H_
