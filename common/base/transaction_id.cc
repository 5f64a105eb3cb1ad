#include "common/base/transaction_id.h"

#include "absl/strings/str_cat.h"
#include "common/base/concat.h"

namespace deut {

std::string TransactionIdText(const TransactionId& id) {
  return Concat(absl::Hex(id.high, absl::kZeroPad16), absl::Hex(id.low, absl::kZeroPad16));
}

bool ParseTransactionId(std::string_view text, TransactionId* id) {
  // (absl::HexStringToBytes takes upper case, too, and reports no wrong digit.)
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.size() != 32) return false;
  *id = TransactionId{};
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return false;
    uint64_t& word = i < 16 ? id->high : id->low;
    word = word << 4 | digit;
  }
  return true;
}

}  // namespace deut
