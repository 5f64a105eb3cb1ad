// The version of this project, the same in all programs. Semantic Versioning; CHANGELOG.md says what each version
// changed. It says nothing of protocols and formats, which have versions of their own.
#ifndef COMMON_BASE_VERSION_H_
#define COMMON_BASE_VERSION_H_

#include <string_view>

namespace deut {

// `scripts/lint` compares it with the newest version in CHANGELOG.md.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace deut

#endif  // COMMON_BASE_VERSION_H_
