// The Linux control groups that limit this process: its own of a controller, and all groups above it, in version 1 or 2.
// Thread-safety: the function reads files of the system only. Errors: a file that cannot be read, or makes no sense,
// counts as no limit.
// Source: cgroups(7).
#ifndef COMMON_RUNTIME_CONTROL_GROUPS_H_
#define COMMON_RUNTIME_CONTROL_GROUPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace deut {

enum class ControlGroupVersion { k1, k2 };

// Calls `visit` with the folder of each group from the process's own up to the top, for `controller` such as "pids". Some
// of the folders may not exist. Tests pass another `root` for /proc and /sys.
void VisitControlGroups(const std::string& root, std::string_view controller,
                        const std::function<void(ControlGroupVersion version, const std::string& folder)>& visit);

// Returns the number in a file of a group; nothing if it holds none, as "max".
std::optional<uint64_t> ReadControlGroupNumber(const std::string& path);

}  // namespace deut

#endif  // COMMON_RUNTIME_CONTROL_GROUPS_H_
