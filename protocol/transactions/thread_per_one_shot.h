// NewThreadPerOneShot: a scheduler for tests of the code around one (one_shot_scheduler.h). It posts each call to a thread,
// which gives it a session of its own and waits for the disk, if it has to. Meanwhile the next message is read. Nothing
// bounds the answers of a peer that takes none. If the service waits on a Runtime that is no BlockingHookRuntime, calls
// delay each other. Thread-safety and ownership: one_shot_scheduler.h.
#ifndef PROTOCOL_TRANSACTIONS_THREAD_PER_ONE_SHOT_H_
#define PROTOCOL_TRANSACTIONS_THREAD_PER_ONE_SHOT_H_

#include <memory>

#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_messages.h"
#include "protocol/transactions/one_shot_scheduler.h"

namespace deut::testing {

// To be passed as OneShotSchedulerFactory.
std::unique_ptr<OneShotScheduler> NewThreadPerOneShot(Runtime& runtime, TransactionService& service,
                                                      OneShotScheduler::Threads& threads, OneShotMessages& messages);

}  // namespace deut::testing

#endif  // PROTOCOL_TRANSACTIONS_THREAD_PER_ONE_SHOT_H_
