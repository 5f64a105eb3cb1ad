#include "integration/product/cli/text.h"

namespace deut::cli {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

void AppendHex(std::string* out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out->push_back(kDigits[byte >> 4]);
  out->push_back(kDigits[byte & 15]);
}

// Returns -1 if `c` is not a hexadecimal digit.
int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Returns the byte that two digits at `at` stand for; -1 if they are not two digits.
int HexByte(std::string_view text, size_t at) {
  if (at + 1 >= text.size()) return -1;
  const int high = Digit(text[at]), low = Digit(text[at + 1]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Result<std::string> DecodeHex(std::string_view what, std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 2) {
    const int byte = HexByte(text, at);
    if (byte < 0)
      return DEUT_ERROR(kInvalidArgument, "the ", what, " is not hexadecimal (two digits a byte) at place ", at);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

Result<std::string> DecodeEscaped(std::string_view what, std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      bytes.push_back(text[at]);
      continue;
    }
    const size_t backslash = at++;
    const char escape = at < text.size() ? text[at] : '\0';
    int byte = -1;
    switch (escape) {
      case '\\':
        byte = '\\';
        break;
      case 't':
        byte = '\t';
        break;
      case 'n':
        byte = '\n';
        break;
      case 'r':
        byte = '\r';
        break;
      case 'x':
        byte = HexByte(text, at + 1);
        at += 2;
        break;
      default:
        break;
    }
    if (byte < 0) {
      return DEUT_ERROR(kInvalidArgument, "the ", what, " has an unknown escape at place ", backslash,
                        "; there are \\\\ \\t \\n \\r and \\xNN (or use --hex)");
    }
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace

std::string EncodeText(std::string_view bytes, TextForm form) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (form == TextForm::kHex) {
      AppendHex(&out, c);
    } else if (c == '\\') {
      out.append("\\\\");
    } else if (c == '\t') {
      out.append("\\t");
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c == '\r') {
      out.append("\\r");
    } else if (byte < 0x20 || byte >= 0x7f) {
      out.append("\\x");
      AppendHex(&out, c);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

Result<std::string> DecodeText(std::string_view what, std::string_view text, TextForm form) {
  return form == TextForm::kHex ? DecodeHex(what, text) : DecodeEscaped(what, text);
}

}  // namespace deut::cli
