#include "integration/history/history_text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <istream>
#include <ostream>
#include <utility>

namespace deut::history {
namespace {

constexpr std::string_view kFirstLine = "history 1";
constexpr std::string_view kHexDigits = "0123456789ABCDEF";

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == '/';
}

int HexDigit(char c) {
  const size_t digit = kHexDigits.find(c);
  return digit == std::string_view::npos ? -1 : static_cast<int>(digit);
}

template <typename Number>
bool ConsumeNumber(std::string_view* text, Number* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool ConsumeId(std::string_view* text, WriteId* id) {
  std::string_view rest = *text;
  if (!ConsumeNumber(&rest, &id->writer) || !rest.starts_with('.')) return false;
  rest.remove_prefix(1);
  if (!ConsumeNumber(&rest, &id->sequence)) return false;
  *text = rest;
  return true;
}

// Parses one line. Every step either advances or records what it expected; the parser trusts nothing in the line.
class LineParser {
 public:
  LineParser(std::string_view line, TransactionRecord* transaction)
      : line_(line), rest_(line), transaction_(transaction) {}

  // On false, `expected` says which syntax is missing, and column() where.
  bool Parse() {
    if (!Head()) return false;
    while (!rest_.empty()) {
      if (!Literal(" ")) return Expected("a blank before the next operation");
      OperationRecord operation;
      if (!Operation(&operation)) return false;
      transaction_->operations.push_back(std::move(operation));
    }
    return true;
  }

  size_t column() const { return line_.size() - rest_.size() + 1; }
  const char* expected = "";

 private:
  bool Expected(const char* what) {
    expected = what;
    return false;
  }

  bool Literal(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool Head() {
    TransactionRecord& t = *transaction_;
    if (!Literal("T") || !ConsumeNumber(&rest_, &t.id) || t.id == 0) return Expected("T and the transaction's number");
    if (!Literal(" c") || !ConsumeNumber(&rest_, &t.client)) return Expected("c and the client's number");
    if (!Literal(" ") || !ConsumeNumber(&rest_, &t.invoke) || !Literal("..")) return Expected("the interval: 10..20");
    const bool ended = ConsumeNumber(&rest_, &t.complete);
    if (ended && t.complete < t.invoke) return Expected("an interval that does not end before it begins");
    if (Literal(" @?")) {
      t.untimed = true;
    } else if (Literal(" @") && (!ConsumeNumber(&rest_, &t.timestamp) || t.timestamp == 0)) {
      return Expected("a timestamp");
    }
    if (Literal(" ok")) {
      t.outcome = Outcome::kCommitted;
    } else if (Literal(" aborted")) {
      t.outcome = Outcome::kAborted;
    } else if (Literal(" unknown")) {
      t.outcome = Outcome::kUnknown;
    } else {
      return Expected("ok, aborted or unknown");
    }
    if (!ended && t.outcome != Outcome::kUnknown) return Expected("the end of the interval");
    if (Literal(" snapshot")) {
      t.snapshot = true;
      if (Literal(">") && (!ConsumeNumber(&rest_, &t.min_timestamp) || t.min_timestamp == 0)) {
        return Expected("the timestamp that the snapshot holds");
      }
    }
    return true;
  }

  bool Operation(OperationRecord* operation) {
    if (rest_.empty()) return Expected("an operation");
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    static constexpr std::pair<char, OperationKind> kLetters[] = {
        {'r', OperationKind::kRead},   {'p', OperationKind::kPresent}, {'w', OperationKind::kWrite},
        {'i', OperationKind::kInsert}, {'u', OperationKind::kUpdate},  {'a', OperationKind::kAppend},
        {'d', OperationKind::kDelete}, {'s', OperationKind::kScan}};
    bool known = false;
    for (const auto& [name, kind] : kLetters) {
      if (name != letter) continue;
      operation->kind = kind;
      known = true;
    }
    if (!known) return Expected("an operation: one of r p w i u a d s");
    ConsumeNumber(&rest_, &operation->table);
    if (!(operation->kind == OperationKind::kScan ? ScanBody(operation) : PointBody(operation))) return false;
    if (!Literal("!")) return true;
    if (!ConsumeNumber(&rest_, &operation->invoke) || !Literal("-") || !ConsumeNumber(&rest_, &operation->complete) ||
        operation->complete < operation->invoke) {
      return Expected("the operation's interval: !12-15");
    }
    return true;
  }

  bool PointBody(OperationRecord* operation) {
    if (!Literal("(") || !Key(&operation->key) || operation->key.empty() || !Literal(")")) {
      return Expected("a key in parentheses");
    }
    if (operation->kind == OperationKind::kPresent || operation->kind == OperationKind::kDelete) return true;
    if (!Literal("=")) return Expected("= and a value");
    if (operation->kind == OperationKind::kRead && Literal("-")) return true;
    Value value;
    if (!ConsumeValue(&rest_, &value)) return Expected("a value: 3.1 or [2.1,3.1]");
    if (MakesValue(operation->kind) && (!value.before.empty() || value.id.writer != transaction_->id)) {
      return Expected("a write of this transaction");
    }
    operation->value = std::move(value);
    return true;
  }

  bool ScanBody(OperationRecord* operation) {
    Scan scan;
    if (!Bounds(&scan.low, &scan.high)) return false;
    scan.descending = Literal("<");
    if (Literal("#") && (!ConsumeNumber(&rest_, &scan.limit) || scan.limit == 0))
      return Expected("a number of records");
    scan.reached_low = scan.low;
    scan.reached_high = scan.high;
    if (Literal("~") && !Bounds(&scan.reached_low, &scan.reached_high)) return false;
    if (!Literal("={")) return Expected("={ and the records");
    for (bool first = true; !Literal("}"); first = false) {
      if (!first && !Literal(",")) return Expected(", or }");
      std::string key;
      Value value;
      if (!Key(&key) || key.empty() || !Literal("=") || !ConsumeValue(&rest_, &value)) return Expected("KEY=VALUE");
      scan.results.emplace_back(std::move(key), std::move(value));
    }
    operation->scan = static_cast<uint32_t>(transaction_->scans.size());
    transaction_->scans.push_back(std::move(scan));
    return true;
  }

  bool Bounds(std::string* low, std::string* high) {
    if (!Literal("[") || !Key(low) || !Literal(",") || !Key(high) || !Literal(")")) {
      return Expected("bounds: [LOW,HIGH)");
    }
    return true;
  }

  bool Key(std::string* key) {
    key->clear();
    while (!rest_.empty()) {
      if (IsPlain(rest_.front())) {
        key->push_back(rest_.front());
        rest_.remove_prefix(1);
      } else if (rest_.front() == '%') {
        const int high = rest_.size() < 3 ? -1 : HexDigit(rest_[1]);
        const int low = rest_.size() < 3 ? -1 : HexDigit(rest_[2]);
        if (high < 0 || low < 0) return false;
        key->push_back(static_cast<char>(high * 16 + low));
        rest_.remove_prefix(3);
      } else {
        break;
      }
    }
    return true;
  }

  const std::string_view line_;
  std::string_view rest_;
  TransactionRecord* const transaction_;
};

// Parses lines from a source until it ends: bool next(std::string_view*).
template <typename NextLine>
Result<History> ParseLines(NextLine next) {
  History history;
  std::string_view line;
  bool begun = false;
  for (uint64_t number = 1; next(&line); ++number) {
    if (line.empty() || line.starts_with('#')) continue;
    if (!begun) {
      if (line != kFirstLine) {
        return DEUT_ERROR(kCorruption, "line ", number, ": a history begins with \"", kFirstLine, "\"");
      }
      begun = true;
      continue;
    }
    TransactionRecord transaction;
    LineParser parser(line, &transaction);
    if (!parser.Parse()) {
      return DEUT_ERROR(kCorruption, "line ", number, ", column ", parser.column(), ": expected ", parser.expected);
    }
    history.transactions.push_back(std::move(transaction));
  }
  if (!begun) return DEUT_ERROR(kCorruption, "line 1: a history begins with \"", kFirstLine, "\"");
  return history;
}

void AppendKey(std::string_view key, std::string* out) {
  for (const char c : key) {
    if (IsPlain(c)) {
      out->push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out->push_back('%');
      out->push_back(kHexDigits[byte >> 4]);
      out->push_back(kHexDigits[byte & 15]);
    }
  }
}

void AppendValue(const Value& value, std::string* out) {
  if (value.before.empty()) {
    ConcatTo(out, value.id.writer, ".", value.id.sequence);
    return;
  }
  out->push_back('[');
  for (const WriteId& id : value.before) ConcatTo(out, id.writer, ".", id.sequence, ",");
  ConcatTo(out, value.id.writer, ".", value.id.sequence, "]");
}

void AppendBounds(std::string_view low, std::string_view high, std::string* out) {
  out->push_back('[');
  AppendKey(low, out);
  out->push_back(',');
  AppendKey(high, out);
  out->push_back(')');
}

void AppendScan(const Scan& scan, std::string* out) {
  AppendBounds(scan.low, scan.high, out);
  if (scan.descending) out->push_back('<');
  if (scan.limit != 0) ConcatTo(out, "#", scan.limit);
  if (scan.reached_low != scan.low || scan.reached_high != scan.high) {
    out->push_back('~');
    AppendBounds(scan.reached_low, scan.reached_high, out);
  }
  out->append("={");
  for (const auto& [key, value] : scan.results) {
    if (&key != &scan.results.front().first) out->push_back(',');
    AppendKey(key, out);
    out->push_back('=');
    AppendValue(value, out);
  }
  out->push_back('}');
}

void AppendOperation(const TransactionRecord& transaction, const OperationRecord& operation, std::string* out) {
  constexpr char kLetters[] = "rpwiuads";
  out->push_back(kLetters[static_cast<size_t>(operation.kind)]);
  if (operation.table != 0) ConcatTo(out, operation.table);
  if (operation.kind == OperationKind::kScan) {
    AppendScan(transaction.scans[operation.scan], out);
  } else {
    out->push_back('(');
    AppendKey(operation.key, out);
    out->push_back(')');
    if (operation.value) {
      out->push_back('=');
      AppendValue(*operation.value, out);
    } else if (operation.kind == OperationKind::kRead) {
      out->append("=-");
    }
  }
  if (operation.invoke != 0 || operation.complete != 0) {
    ConcatTo(out, "!", operation.invoke, "-", operation.complete);
  }
}

}  // namespace

bool ConsumeValue(std::string_view* text, Value* value) {
  value->before.clear();
  if (!text->starts_with('[')) return ConsumeId(text, &value->id);
  std::string_view rest = text->substr(1);
  if (!ConsumeId(&rest, &value->id)) return false;
  while (rest.starts_with(',')) {
    rest.remove_prefix(1);
    value->before.push_back(value->id);
    if (!ConsumeId(&rest, &value->id)) return false;
  }
  if (!rest.starts_with(']')) return false;
  *text = rest.substr(1);
  return true;
}

Result<History> ParseHistory(std::string_view text) {
  return ParseLines([&text](std::string_view* line) {
    if (text.empty()) return false;
    const size_t end = std::min(text.find('\n'), text.size());
    *line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return true;
  });
}

Result<History> ReadHistory(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return DEUT_ERROR(kIoError, "cannot open the history ", path, ": ", std::strerror(errno));
  std::string buffer;
  Result<History> history = ParseLines([&](std::string_view* line) {
    if (!std::getline(file, buffer)) return false;
    *line = buffer;
    return true;
  });
  if (file.bad()) return DEUT_ERROR(kIoError, "cannot read the history ", path);
  if (!history.ok()) return DEUT_ERROR(kCorruption, path, ", ", history.status().message());
  return history;
}

void WriteHistory(const History& history, std::ostream& out) {
  out << kFirstLine << '\n';
  for (const TransactionRecord& transaction : history.transactions) out << ToText(transaction) << '\n';
}

Status WriteHistory(const History& history, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  WriteHistory(history, file);
  file.flush();
  if (!file) return DEUT_ERROR(kIoError, "cannot write the history ", path, ": ", std::strerror(errno));
  return Status();
}

std::string ToText(const TransactionRecord& transaction) {
  std::string text = Concat("T", transaction.id, " c", transaction.client, " ", transaction.invoke, "..");
  if (transaction.outcome != Outcome::kUnknown) ConcatTo(&text, transaction.complete);
  if (transaction.untimed) {
    text.append(" @?");
  } else if (transaction.timestamp != 0) {
    ConcatTo(&text, " @", transaction.timestamp);
  }
  constexpr const char* kOutcomes[] = {" ok", " aborted", " unknown"};
  text.append(kOutcomes[static_cast<size_t>(transaction.outcome)]);
  if (transaction.snapshot) text.append(" snapshot");
  if (transaction.min_timestamp != 0) ConcatTo(&text, ">", transaction.min_timestamp);
  for (const OperationRecord& operation : transaction.operations) {
    text.push_back(' ');
    AppendOperation(transaction, operation, &text);
  }
  return text;
}

std::string ToText(const TransactionRecord& transaction, const OperationRecord& operation) {
  std::string text;
  AppendOperation(transaction, operation, &text);
  return text;
}

std::string ToText(const Value& value) {
  std::string text;
  AppendValue(value, &text);
  return text;
}

std::string KeyText(std::string_view key) {
  std::string text;
  AppendKey(key, &text);
  return text;
}

}  // namespace deut::history
