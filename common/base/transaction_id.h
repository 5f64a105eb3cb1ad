// TransactionId: the name by which a client identifies a transaction, so that it can ask for its outcome later: 16
// bytes, never used twice. A client object draws a base at random, and adds a counter for each transaction
// (tc/client/client_core.cc). All zero = none.
// Thread-safety: a value.
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

// Returns 32 lower-case hexadecimal digits, `high` first.
std::string TransactionIdText(const TransactionId& id);
// Reads such a text. False, with *id undefined, unless `text` is 32 lower-case hexadecimal digits.
bool ParseTransactionId(std::string_view text, TransactionId* id);

}  // namespace deut

#endif  // COMMON_BASE_TRANSACTION_ID_H_
