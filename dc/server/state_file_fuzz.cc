// Fuzzes the state of a DC with any bytes. The decoder refuses them, or returns a state that encodes to exactly these
// bytes. The bytes are tried unchanged, and also with the right magic, version, length and checksum, so that the
// fields are reached. They are also tried as a file of a data folder, which is refused or replaced as a whole.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/server/state_file.h"

namespace deut::dc {
namespace {

void PlayFile(std::string_view bytes, bool is_state) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  DEUT_CHECK(storage->CreateDirectory("/dc").ok());
  // The first byte selects the kind of file.
  const bool other = !bytes.empty() && bytes[0] == 'o';
  const auto file = storage->Open(is_state ? "/dc/dc_state"
                                  : other  ? "/dc/other"
                                           : "/dc/dc_state.new",
                                  {.create = true, .writable = true});
  DEUT_CHECK(file.ok() && (*file)->Write(0, bytes.data(), bytes.size()).ok());
  StateFile state_file(*storage, "/dc");
  const auto found = state_file.Load();
  if (!found.ok()) {
    DEUT_CHECK(found.status() == ErrorCode::kCorruption || found.status() == ErrorCode::kVersionMismatch);
    return;
  }
  DEUT_CHECK(found->has_value() == is_state);
  DcState next = found->value_or(DcState());
  ++next.number.value;
  DEUT_CHECK(state_file.Save(next).ok());
  const auto again = state_file.Load();
  DEUT_CHECK(again.ok() && *again == next);
}

void Play(std::string_view bytes) {
  const auto state = DecodeDcState(bytes, "fuzz");
  // A state of version 1 is re-encoded in the newest version.
  if (state.ok())
    DEUT_CHECK(EncodeDcState(*state) == bytes || *DecodeDcState(EncodeDcState(*state), "again") == *state);
  PlayFile(bytes, /*is_state=*/true);
  PlayFile(bytes, /*is_state=*/false);
}

// Returns the fields in a correct frame, as the encoder would write them.
std::string Sealed(std::string_view bytes) {
  std::string sealed = EncodeDcState(DcState());
  const size_t fields = 16, checksum = sealed.size() - sizeof(uint32_t);
  for (size_t at = fields; at < checksum && at < bytes.size(); ++at) sealed[at] = bytes[at];
  StoreU32(sealed.data() + checksum, Crc32c(std::string_view(sealed).substr(0, checksum)));
  return sealed;
}

}  // namespace
}  // namespace deut::dc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  deut::dc::Play(bytes);
  deut::dc::Play(deut::dc::Sealed(bytes));
  return 0;
}
