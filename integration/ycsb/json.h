// JSON in the form that the benchmarks write. (protobuf's JSON needs a message type for each report, or a Struct, whose
// members have no order.)
// Thread-safety: none.
#ifndef INTEGRATION_YCSB_JSON_H_
#define INTEGRATION_YCSB_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deut::ycsb {

// Returns `text` in quotes, with the characters escaped that JSON requires; a byte that is not ASCII becomes \u00XX.
std::string JsonString(std::string_view text);

// Builds one object, member by member.
class JsonObject {
 public:
  JsonObject& Text(std::string_view name, std::string_view value);
  JsonObject& Number(std::string_view name, uint64_t value);
  // Six digits; a value that is not finite becomes 0.
  JsonObject& Number(std::string_view name, double value);
  // `value` is JSON text.
  JsonObject& Raw(std::string_view name, std::string_view value);
  std::string Str() const;

 private:
  std::vector<std::string> members_;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_JSON_H_
