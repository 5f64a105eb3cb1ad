#include "common/base/transaction_id.h"

namespace deut {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string TransactionIdText(const TransactionId& id) {
  std::string text;
  for (const uint64_t word : {id.high, id.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(word >> shift) & 15];
  }
  return text;
}

bool ParseTransactionId(std::string_view text, TransactionId* id) {
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
