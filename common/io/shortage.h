// Retries while the process or the system lacks a descriptor (EMFILE, ENFILE) or kernel memory (ENOMEM, ENOBUFS,
// EAGAIN): a *shortage*.
//
// A shortage says nothing about the file: nothing was opened, read or changed. So the storage retries, with pauses
// from 1 ms to 64 ms, for at most kShortagePatience; transfers have limits of their own (transfer.h). After that it
// answers RESOURCE_EXHAUSTED, which callers treat like a full disk: they try again later. A caller that has other work
// meanwhile opens files with OpenOptions::once, and pauses by itself.
// Every shortage is counted; at most one line a second is logged.
// Thread-safety: all functions from any thread.
#ifndef COMMON_IO_SHORTAGE_H_
#define COMMON_IO_SHORTAGE_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "common/runtime/runtime.h"

namespace deut {

constexpr Duration kShortagePatience = std::chrono::seconds(1);

// True if `error`, an errno, may pass by itself as soon as another thread or process releases something.
bool IsShortage(int error);

// Calls `attempt`, which returns a descriptor or 0, or -1 and sets errno. Repeats until it succeeds, fails with an
// error that is no shortage, or kShortagePatience is over. Returns the result of the last attempt, with its errno.
// `operation` and `path` are for the log line.
int RetryShortage(Runtime& runtime, std::string_view operation, std::string_view path,
                  const std::function<int()>& attempt);

// Counts one failed attempt that the caller is going to repeat, and logs it if no line was logged for a second.
void RecordShortage(Runtime& runtime, std::string_view operation, std::string_view path, int error);

// The number of failed attempts of this process so far.
uint64_t ShortageCount();

}  // namespace deut

#endif  // COMMON_IO_SHORTAGE_H_
