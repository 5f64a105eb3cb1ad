// Histories as text, one line a transaction: people can write and read it, and files can keep it. README.md has the
// grammar.
//
//   history 1
//   # T1 and T2 both read what T1 then overwrote.
//   T1 c1 10..20 @1 ok w(x)=1.1 a(list)=1.2
//   T2 c2 15..40 @7 unknown r(x)=1.1 r(list)=[1.2] s[a,z)<#2~[x,z)={x=1.1} d(x)
//
// Thread-safety: pure functions. Errors: CORRUPTION naming line, column and the expected syntax; IO_ERROR naming the
// file.
#ifndef INTEGRATION_HISTORY_HISTORY_TEXT_H_
#define INTEGRATION_HISTORY_HISTORY_TEXT_H_

#include <iosfwd>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "integration/history/history.h"

namespace deut::history {

Result<History> ParseHistory(std::string_view text);
Result<History> ReadHistory(const std::string& path);

void WriteHistory(const History& history, std::ostream& out);
Status WriteHistory(const History& history, const std::string& path);

// Returns the text of one transaction, without the end of the line.
std::string ToText(const TransactionRecord& transaction);
std::string ToText(const TransactionRecord& transaction, const OperationRecord& operation);
std::string ToText(const Value& value);
// Returns a key's bytes as they stand in a history: unusual bytes as %XX.
std::string KeyText(std::string_view key);

// Parses the value at the start of `text` and moves `text` behind it. Returns false and leaves `text` as it was if
// there is none.
bool ConsumeValue(std::string_view* text, Value* value);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_HISTORY_TEXT_H_
