#include "integration/ycsb/record.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "common/base/check.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/runtime/random.h"

namespace deut::ycsb {
namespace {

constexpr std::string_view kPrefix = "user";
constexpr size_t kWriterAt = 0, kSequenceAt = 8, kNumberAt = 12, kChecksumAt = 20, kFillerAt = 24;

uint32_t Checksum(std::string_view key, std::string_view value) {
  uint32_t crc = Crc32c(key);
  crc = ExtendCrc32c(crc, value.data(), kChecksumAt);
  return ExtendCrc32c(crc, value.data() + kFillerAt, value.size() - kFillerAt);
}

}  // namespace

void MakeKey(uint64_t number, std::string* key) {
  key->assign(kPrefix);
  key->resize(kKeyBytes);
  uint64_t hash = Mix64(number);
  for (size_t i = kKeyBytes; i > kPrefix.size(); hash /= 10) (*key)[--i] = static_cast<char>('0' + hash % 10);
}

std::string KeyOf(uint64_t number) {
  std::string key;
  MakeKey(number, &key);
  return key;
}

void MakeValue(uint64_t number, WriteId id, std::string_view key, uint32_t value_bytes, std::string* value) {
  DEUT_CHECK(value_bytes >= kMinValueBytes);
  value->resize(value_bytes);
  char* const data = value->data();
  StoreU64(data + kWriterAt, id.writer);
  StoreU32(data + kSequenceAt, id.sequence);
  StoreU64(data + kNumberAt, number);
  Random filler(Mix64(id.writer) ^ id.sequence);
  for (size_t at = kFillerAt; at < value_bytes; at += 8) {
    const uint64_t bytes = filler.Next();
    std::memcpy(data + at, &bytes, std::min<size_t>(8, value_bytes - at));
  }
  StoreU32(data + kChecksumAt, Checksum(key, *value));
}

Result<WriteId> CheckValue(std::string_view key, std::string_view value) {
  if (value.size() < kMinValueBytes) {
    return DEUT_ERROR(kCorruption, "the value of ", absl::CHexEscape(std::string(key)), " has only ", value.size(),
                      " bytes");
  }
  const uint32_t stored = LoadU32(value.data() + kChecksumAt);
  const uint32_t computed = Checksum(key, value);
  const WriteId id{.writer = LoadU64(value.data() + kWriterAt), .sequence = LoadU32(value.data() + kSequenceAt)};
  if (stored != computed) {
    return DEUT_ERROR(kCorruption, "the value of ", absl::CHexEscape(std::string(key)),
                      " is torn or another key's: checksum ", stored, ", computed ", computed, "; it names writer ",
                      id.writer, ", sequence ", id.sequence, ", record ", LoadU64(value.data() + kNumberAt));
  }
  return id;
}

}  // namespace deut::ycsb
