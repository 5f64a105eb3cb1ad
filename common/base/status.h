// Status: the outcome of an operation: OK, or a code of error_table.h with a message for a person and, for aborts,
// the conflict. Result<T>: a Status that is not OK, or a value.
// Thread-safety: values; distinct objects may be used from distinct threads. OK costs one null pointer and no
// allocation.
// Why not absl::Status: its codes are gRPC's, and none of them says FENCED, POSITION_GAP or WRONG_INCARNATION, on which
// callers act. The conflict and the pause would be payloads: bytes that the aborted transaction serializes, and that
// its caller parses again. Aborts are frequent under contention.
#ifndef COMMON_BASE_STATUS_H_
#define COMMON_BASE_STATUS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/abort_reason.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/error_table.h"

namespace deut {

enum class ErrorCode : uint16_t {
#define DEUT_ERROR_ENUM(enumerator, number, name, retry, advice) enumerator = number,
  DEUT_ERROR_TABLE(DEUT_ERROR_ENUM)
#undef DEUT_ERROR_ENUM
};

enum class Retry : uint8_t { kNever, kTransaction, kLater };

const char* ErrorCodeName(ErrorCode code);
const char* ErrorCodeAdvice(ErrorCode code);
Retry ErrorCodeRetry(ErrorCode code);
// Returns the code with this wire number; kInternal if there is none (a newer peer's code).
ErrorCode ErrorCodeFromNumber(uint32_t number);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  static Status Ok() { return Status(); }
  // Makes ABORTED with the conflict that decided it.
  static Status Aborted(AbortInfo info, std::string message);

  bool ok() const { return rep_ == nullptr; }
  ErrorCode code() const { return rep_ == nullptr ? ErrorCode::kOk : rep_->code; }
  std::string_view message() const { return rep_ == nullptr ? std::string_view() : std::string_view(rep_->message); }
  // Null unless the code is kAborted.
  const AbortInfo* abort() const { return rep_ == nullptr || !rep_->abort ? nullptr : &*rep_->abort; }
  // Pause before a repetition, in milliseconds, as hinted by the component that refused; 0 = no hint.
  uint32_t retry_after_ms() const { return rep_ == nullptr ? 0 : rep_->retry_after_ms; }
  Status&& WithRetryAfter(uint32_t ms) &&;

  // Returns "CODE: message", with reason, key and other transaction for aborts; "OK".
  std::string ToString() const;

 private:
  struct Rep {
    ErrorCode code;
    std::string message;
    std::optional<AbortInfo> abort;
    uint32_t retry_after_ms = 0;
  };
  std::unique_ptr<Rep> rep_;
};

inline bool operator==(const Status& status, ErrorCode code) { return status.code() == code; }

// Makes an error Status; concatenates the pieces of the message (concat.h).
#define DEUT_ERROR(code, ...) ::deut::Status(::deut::ErrorCode::code, ::deut::Concat(__VA_ARGS__))

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) { DEUT_CHECK(!status_.ok()); }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return Checked(); }
  const T& value() const& { return const_cast<Result*>(this)->Checked(); }
  T&& value() && { return std::move(Checked()); }
  T& operator*() & { return Checked(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(Checked()); }
  T* operator->() { return &Checked(); }
  const T* operator->() const { return &value(); }

 private:
  T& Checked() {
    DEUT_CHECK(value_.has_value());
    return *value_;
  }
  Status status_;
  std::optional<T> value_;
};

#define DEUT_RETURN_IF_ERROR(expression)       \
  do {                                         \
    ::deut::Status deut_status = (expression); \
    if (!deut_status.ok()) [[unlikely]] {      \
      return deut_status;                      \
    }                                          \
  } while (false)

#define DEUT_CONCAT_INNER(a, b) a##b
#define DEUT_CONCAT(a, b) DEUT_CONCAT_INNER(a, b)
#define DEUT_ASSIGN_OR_RETURN(declaration, expression) \
  DEUT_ASSIGN_OR_RETURN_IMPL(DEUT_CONCAT(deut_result_, __LINE__), declaration, expression)
#define DEUT_ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                       \
  if (!result.ok()) [[unlikely]] {                                  \
    return result.status();                                         \
  }                                                                 \
  declaration = std::move(result).value()

}  // namespace deut

#endif  // COMMON_BASE_STATUS_H_
