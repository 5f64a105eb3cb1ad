// ForEachInParallel: the same work for many things, on several threads. For start-up and other cold paths that wait for the disk.
//
// Calls work(i) once for each i below `count`, in about ascending order, on up to `threads` threads, of which the caller is one; comes back when
// all calls have. After an error no further call begins. Answers OK, or the error of the smallest i that met one.
// Thread-safety: `work` is called by several threads at once.
#ifndef COMMON_SYNC_PARALLEL_H_
#define COMMON_SYNC_PARALLEL_H_

#include <cstddef>
#include <functional>

#include "common/base/status.h"
#include "common/runtime/runtime.h"

namespace deut {

Status ForEachInParallel(Runtime& runtime, int threads, size_t count, const std::function<Status(size_t)>& work);

}  // namespace deut

#endif  // COMMON_SYNC_PARALLEL_H_
