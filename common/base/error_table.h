// The one table of errors: every status code of the system, its wire number, and what the caller should do.
// A code exists if and only if some caller reacts to it differently than to the others. Numbers travel on the wire
// and are never reused. DEUT_ERROR_TABLE(X) expands X(enumerator, number, name, retry, advice) once per row.
//   retry: kNever            the same call cannot succeed when it is repeated
//          kTransaction      begin a new transaction and run it again
//          kLater            repeat the same call after a pause
#ifndef COMMON_BASE_ERROR_TABLE_H_
#define COMMON_BASE_ERROR_TABLE_H_

// clang-format off
#define DEUT_ERROR_TABLE(X)                                                                                                        \
  X(kOk, 0, "OK", kNever, "")                                                                                                      \
  X(kInvalidArgument, 1, "INVALID_ARGUMENT", kNever, "correct the request; the message names the field and its limit")             \
  X(kNotFound, 2, "NOT_FOUND", kNever, "the named key, table or file does not exist")                                              \
  X(kAlreadyExists, 3, "ALREADY_EXISTS", kNever, "the named key or table exists")                                                  \
  X(kConditionFailed, 4, "CONDITION_FAILED", kNever, "a compare found another value")                                              \
  X(kAborted, 5, "ABORTED", kTransaction, "a conflict aborted the transaction; run it again")                                      \
  X(kUnavailable, 6, "UNAVAILABLE", kLater, "the peer is down, starting or recovering; nothing was done")                          \
  X(kDeadlineExceeded, 7, "DEADLINE_EXCEEDED", kLater, "the deadline passed before an answer; nothing was committed")              \
  X(kResourceExhausted, 8, "RESOURCE_EXHAUSTED", kLater, "a stated limit is reached; repeat after the hinted pause")               \
  X(kOutcomeUnknown, 9, "OUTCOME_UNKNOWN", kNever, "the commit may or may not have happened; read before repeating")               \
  X(kFenced, 10, "FENCED", kNever, "a newer transaction component has taken over; this one must stop")                             \
  X(kWrongIncarnation, 11, "WRONG_INCARNATION", kLater, "the data component restarted; say Hello again")                           \
  X(kPositionGap, 12, "POSITION_GAP", kNever, "a log batch does not begin where the applied updates end; resend from the applied position")\
  X(kVersionMismatch, 13, "VERSION_MISMATCH", kNever, "the peers speak different protocol versions; upgrade the older one")        \
  X(kWrongState, 14, "WRONG_STATE", kNever, "the call does not fit the state of the transaction or session")                       \
  X(kCorruption, 15, "CORRUPTION", kNever, "stored or received bytes are damaged; nothing was deleted")                            \
  X(kIoError, 16, "IO_ERROR", kNever, "the operating system refused an input or output; the message names file and error")         \
  X(kPermissionDenied, 17, "PERMISSION_DENIED", kNever, "the peer's name is not on the allow-list")                                \
  X(kCancelled, 18, "CANCELLED", kNever, "the caller gave the call up")                                                            \
  X(kInternal, 19, "INTERNAL", kNever, "an invariant does not hold; report it")
// clang-format on

#endif  // COMMON_BASE_ERROR_TABLE_H_
