// ForEachInParallel: does the same work for many items on several threads. For start-up and other cold paths that
// wait for the disk.
//
// Calls work(i) once for each i below `count`, in about ascending order, on at most `threads` threads, including the
// caller. Returns when all calls have returned. After an error no further call begins.
// ForEachByThread also passes the number of the calling thread, below max(threads, 1). Calls with the same number do
// not overlap, so each thread may have an object of its own.
// Errors: OK, or the error of the smallest i whose call failed.
// Thread-safety: several threads call `work` at once.
#ifndef COMMON_SYNC_PARALLEL_H_
#define COMMON_SYNC_PARALLEL_H_

#include <cstddef>
#include <functional>

#include "common/base/status.h"
#include "common/runtime/runtime.h"

namespace deut {

Status ForEachInParallel(Runtime& runtime, int threads, size_t count, const std::function<Status(size_t)>& work);
Status ForEachByThread(Runtime& runtime, int threads, size_t count,
                       const std::function<Status(size_t i, size_t thread)>& work);

}  // namespace deut

#endif  // COMMON_SYNC_PARALLEL_H_
