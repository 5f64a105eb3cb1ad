#include "integration/ycsb/json.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/concat.h"

namespace deut::ycsb {

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      out.append(absl::StrFormat("\\u%04x", byte));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

JsonObject& JsonObject::Text(std::string_view name, std::string_view value) { return Raw(name, JsonString(value)); }

JsonObject& JsonObject::Number(std::string_view name, uint64_t value) { return Raw(name, Concat(value)); }

JsonObject& JsonObject::Number(std::string_view name, double value) {
  return Raw(name, absl::StrFormat("%.6g", std::isfinite(value) ? value : 0));
}

JsonObject& JsonObject::Raw(std::string_view name, std::string_view value) {
  members_.push_back(Concat(JsonString(name), ": ", value));
  return *this;
}

std::string JsonObject::Str() const { return "{" + absl::StrJoin(members_, ", ") + "}"; }

}  // namespace deut::ycsb
