// TransactionId: what a client calls a transaction by, so that it can ask what became of it: 16 bytes, drawn at random, never used twice.
// All zero = none. Thread-safety: a value.
#ifndef COMMON_BASE_TRANSACTION_ID_H_
#define COMMON_BASE_TRANSACTION_ID_H_

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace deut {

struct TransactionId {
  uint64_t high = 0;
  uint64_t low = 0;
  constexpr bool given() const { return (high | low) != 0; }
  friend constexpr auto operator<=>(const TransactionId&, const TransactionId&) = default;
};

// 32 hexadecimal digits.
std::string TransactionIdText(const TransactionId& id);
// False if it is not such a text.
bool ParseTransactionId(std::string_view text, TransactionId* id);

}  // namespace deut

#endif  // COMMON_BASE_TRANSACTION_ID_H_
