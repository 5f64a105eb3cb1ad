#include "common/base/status.h"

#include "absl/strings/escaping.h"

namespace deut {

// Each function below expands a table of error_table.h or abort_reason.h, so that a new row is never forgotten here.
const char* AbortReasonName(AbortReason reason) {
  switch (reason) {
#define DEUT_ABORT_REASON_NAME(enumerator, number, name, meaning) \
  case AbortReason::enumerator:                                   \
    return name;
    DEUT_ABORT_REASON_TABLE(DEUT_ABORT_REASON_NAME)
#undef DEUT_ABORT_REASON_NAME
  }
  return "unknown";
}

const char* ErrorCodeName(ErrorCode code) {
  switch (code) {
#define DEUT_ERROR_NAME(enumerator, number, name, retry, advice) \
  case ErrorCode::enumerator:                                    \
    return name;
    DEUT_ERROR_TABLE(DEUT_ERROR_NAME)
#undef DEUT_ERROR_NAME
  }
  return "INTERNAL";
}

const char* ErrorCodeAdvice(ErrorCode code) {
  switch (code) {
#define DEUT_ERROR_ADVICE(enumerator, number, name, retry, advice) \
  case ErrorCode::enumerator:                                      \
    return advice;
    DEUT_ERROR_TABLE(DEUT_ERROR_ADVICE)
#undef DEUT_ERROR_ADVICE
  }
  return "";
}

Retry ErrorCodeRetry(ErrorCode code) {
  switch (code) {
#define DEUT_ERROR_RETRY(enumerator, number, name, retry, advice) \
  case ErrorCode::enumerator:                                     \
    return Retry::retry;
    DEUT_ERROR_TABLE(DEUT_ERROR_RETRY)
#undef DEUT_ERROR_RETRY
  }
  return Retry::kNever;
}

ErrorCode ErrorCodeFromNumber(uint32_t number) {
  switch (number) {
#define DEUT_ERROR_FROM(enumerator, number, name, retry, advice) \
  case number:                                                   \
    return ErrorCode::enumerator;
    DEUT_ERROR_TABLE(DEUT_ERROR_FROM)
#undef DEUT_ERROR_FROM
    default:
      return ErrorCode::kInternal;
  }
}

Status::Status(ErrorCode code, std::string message) {
  if (code != ErrorCode::kOk) {
    rep_ = std::make_unique<Rep>(Rep{.code = code, .message = std::move(message), .abort = std::nullopt});
  }
}

Status::Status(const Status& other) : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

Status Status::Aborted(AbortInfo info, std::string message) {
  Status status(ErrorCode::kAborted, std::move(message));
  status.rep_->abort = std::move(info);
  return status;
}

Status&& Status::WithRetryAfter(uint32_t ms) && {
  if (rep_) rep_->retry_after_ms = ms;
  return std::move(*this);
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  std::string text = Concat(ErrorCodeName(rep_->code), ": ", rep_->message);
  if (rep_->abort) {
    ConcatTo(&text, " [reason ", AbortReasonName(rep_->abort->reason));
    if (!rep_->abort->key.empty()) {
      ConcatTo(&text, ", table ", rep_->abort->table, ", key \"", absl::CHexEscape(rep_->abort->key), "\"");
    }
    if (rep_->abort->other_timestamp != 0) ConcatTo(&text, ", against transaction ", rep_->abort->other_timestamp);
    ConcatTo(&text, "]");
  }
  if (rep_->retry_after_ms != 0) ConcatTo(&text, " (retry after ", rep_->retry_after_ms, " ms)");
  return text;
}

}  // namespace deut
