// JSON as the benchmarks write it. Thread-safety: none of its own.
#ifndef INTEGRATION_YCSB_JSON_H_
#define INTEGRATION_YCSB_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deut::ycsb {

// `text` in quotes, with everything escaped that JSON wants escaped; bytes that are no ASCII as \u00XX.
std::string JsonString(std::string_view text);

// Builds one object, member by member.
class JsonObject {
 public:
  JsonObject& Text(std::string_view name, std::string_view value);
  JsonObject& Number(std::string_view name, uint64_t value);
  // Six digits; what is not finite is written as 0.
  JsonObject& Number(std::string_view name, double value);
  // `value` is JSON.
  JsonObject& Raw(std::string_view name, std::string_view value);
  std::string Str() const;

 private:
  std::vector<std::string> members_;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_JSON_H_
