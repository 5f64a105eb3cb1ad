// Concat: makes one string of pieces (strings, numbers, absl::Hex and others), by absl::StrCat's rules. Debian
// configures Abseil with a string_view of its own (ABSL_OPTION_USE_STD_STRING_VIEW is 0), so absl::StrCat does not
// accept std::string_view.
// Thread-safety: pure functions.
#ifndef COMMON_BASE_CONCAT_H_
#define COMMON_BASE_CONCAT_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace deut {
namespace concat_internal {

template <typename Piece>
inline decltype(auto) Known(const Piece& piece) {
  if constexpr (std::is_same_v<Piece, std::string_view>) {
    return absl::string_view(piece.data(), piece.size());
  } else {
    return (piece);
  }
}

}  // namespace concat_internal

template <typename... Pieces>
std::string Concat(const Pieces&... pieces) {
  return absl::StrCat(concat_internal::Known(pieces)...);
}

template <typename... Pieces>
void ConcatTo(std::string* text, const Pieces&... pieces) {
  absl::StrAppend(text, concat_internal::Known(pieces)...);
}

// Formats bytes for a message: in double quotes, unprintable bytes as hexadecimal escapes.
inline std::string Quoted(std::string_view bytes) {
  return absl::StrCat("\"", absl::CHexEscape(absl::string_view(bytes.data(), bytes.size())), "\"");
}

}  // namespace deut

#endif  // COMMON_BASE_CONCAT_H_
