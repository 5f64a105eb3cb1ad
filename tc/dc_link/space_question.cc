#include "tc/dc_link/space_question.h"

#include "absl/strings/str_cat.h"

namespace deut::tc {

void SpaceQuestion::Observe(bool put_refused, uint64_t free_bytes) {
  if (put_refused) {
    log_.Begin([&] {
      return absl::StrCat("disk: puts are refused, ", options_.dc_name, " has ", free_bytes, " bytes free, of which ",
                          options_.reserve_bytes, " are kept");
    });
  } else if (free_bytes >= options_.reserve_bytes) {
    // A note that was cleared to ask again does not end the lack: only space above the reserve does.
    log_.End([&] { return absl::StrCat("disk: ", options_.dc_name, " has ", free_bytes, " bytes free again"); });
  }
}

}  // namespace deut::tc
