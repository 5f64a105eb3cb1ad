#include "integration/product/cli/text.h"

#include <gtest/gtest.h>

#include <string>

#include "common/runtime/random.h"

namespace deut::cli {
namespace {

TEST(Text, Forms) {
  EXPECT_EQ(EncodeText("user1 é", TextForm::kEscaped), "user1 \\xc3\\xa9");
  EXPECT_EQ(EncodeText(std::string("\0\t\n\r\\\x7f", 6), TextForm::kEscaped), "\\x00\\t\\n\\r\\\\\\x7f");
  EXPECT_EQ(EncodeText(std::string("\0A\xff", 3), TextForm::kHex), "0041ff");
  EXPECT_EQ(DecodeText("key", "plain text", TextForm::kEscaped).value(), "plain text");
  EXPECT_EQ(DecodeText("key", "\\x00\\xFf", TextForm::kEscaped).value(), std::string("\0\xff", 2));
  EXPECT_EQ(DecodeText("key", "00fF", TextForm::kHex).value(), std::string("\0\xff", 2));
  EXPECT_EQ(DecodeText("key", "", TextForm::kHex).value(), "");
}

TEST(Text, EncodedTextDecodesToTheSameBytes) {
  Random random(5);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(random.Below(40), '\0');
    for (char& c : bytes) c = static_cast<char>(random.Below(256));
    for (const TextForm form : {TextForm::kEscaped, TextForm::kHex}) {
      const Result<std::string> taken = DecodeText("key", EncodeText(bytes, form), form);
      ASSERT_TRUE(taken.ok()) << taken.status().ToString();
      EXPECT_EQ(*taken, bytes);
    }
  }
}

TEST(Text, ErrorsNameThePlace) {
  for (const char* text : {"ab\\", "ab\\q", "ab\\x", "ab\\x1", "ab\\x1g"}) {
    const Status status = DecodeText("value", text, TextForm::kEscaped).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(status.ToString().find("the value has an unknown escape at place 2"), std::string::npos)
        << status.ToString();
  }
  for (const char* text : {"abc", "0g", "é"})
    EXPECT_EQ(DecodeText("key", text, TextForm::kHex).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace deut::cli
