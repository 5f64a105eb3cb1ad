// Priority of the calling thread for the scheduler. Thread-safety: any thread may call it; it affects no other thread.
// Source: setpriority(2), section "C library/kernel differences": in Linux each thread has a nice value of its own.
#ifndef COMMON_RUNTIME_THREAD_PRIORITY_H_
#define COMMON_RUNTIME_THREAD_PRIORITY_H_

namespace deut {

// From now on the thread gives way to the process's other threads where they compete for a processor. It still gets
// about a tenth of what each of them gets. There is no way back without privileges.
void LowerThreadPriority();

}  // namespace deut

#endif  // COMMON_RUNTIME_THREAD_PRIORITY_H_
