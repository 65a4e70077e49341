// Answers: written and read back, and texts that are not answers.
#include "tracefs/control/answer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tracefs {
namespace {

TEST(ControlAnswerTest, RoundTrip_Result) {
  const std::string line = OkLine(3, R"({"a":[1,2]})");
  EXPECT_EQ(line, "{\"id\":3,\"ok\":true,\"result\":{\"a\":[1,2]}}\n");
  const auto parsed = ParseAnswer(line);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->id, 3u);
  EXPECT_TRUE(parsed->status.ok());
  EXPECT_EQ(parsed->result, R"({"a":[1,2]})");
}

TEST(ControlAnswerTest, RoundTrip_ErrorsKeepTheirKindAndText) {
  for (const Status& status :
       {Status::Invalid("x.conf:3:1: no \"such\" word"),
        Status::Corrupt("damaged"), Status::System(ENOENT, "file 'x'")}) {
    const auto parsed = ParseAnswer(ErrorLine(std::nullopt, status));
    ASSERT_TRUE(parsed.ok());
    EXPECT_FALSE(parsed->id.has_value());
    EXPECT_EQ(parsed->status.code(), status.code());
    EXPECT_EQ(parsed->status.error(), status.error());
    EXPECT_EQ(parsed->status.message(), status.message());
  }
}

TEST(ControlAnswerTest, BytesThatAreNotUtf8BecomeValidJson) {
  const std::string line = ErrorLine(1, Status::Invalid("file '\xff\xfe'"));
  EXPECT_FALSE(nlohmann::json::parse(line, nullptr, false).is_discarded());
}

TEST(ControlAnswerTest, Malicious_WhatIsNoAnswerIsRefused) {
  for (const char* line : {"", "x", "[]", "{}", R"({"ok":1})", R"({"ok":true})",
                           R"({"ok":false})", R"({"ok":false,"error":"x"})",
                           R"({"ok":false,"error":{"code":1,"message":"x"}})",
                           R"({"ok":false,"error":{"code":"invalid"}})"}) {
    EXPECT_EQ(ParseAnswer(line).status().code(), StatusCode::kCorrupt) << line;
  }
}

TEST(ControlAnswerTest, Malicious_WhatATerminalWouldObeyIsSpelledOut) {
  const auto error = ParseAnswer(
      "{\"ok\":false,\"error\":{\"code\":\"system\",\"message\":"
      "\"a\\u001b[2J\\nb\"}}");
  ASSERT_TRUE(error.ok());
  EXPECT_EQ(error->status.message(), "a\\x1b[2J\\nb");
  const auto result =
      ParseAnswer("{\"ok\":true,\"result\":\"\\u001b\\u202e\"}");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->result, "\"\\u001b\\u202e\"");
}

TEST(ControlAnswerTest, Malicious_NestingAndNumberOfValuesAreBounded) {
  const auto answer = [](const std::string& result) {
    return ParseAnswer("{\"ok\":true,\"result\":" + result + "}");
  };
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_TRUE(answer(nested(31)).ok());
  EXPECT_EQ(answer(nested(32)).status().code(), StatusCode::kCorrupt);
  EXPECT_EQ(answer(nested(1'000'000)).status().code(), StatusCode::kCorrupt);
  // Brackets in texts are none.
  EXPECT_TRUE(answer('"' + std::string(1000, '[') + "\\\"[\"").ok());
  std::string many = "[0";
  for (int i = 0; i < 600'000; ++i) many += ",0";
  EXPECT_EQ(answer(many + "]").status().code(), StatusCode::kCorrupt);
}

// What a helper tells: the same, without the form of an answer.
TEST(ControlAnswerTest, Malicious_WordsOfAPeerAreOnOneLineAndPrintable) {
  const auto word = [](std::string_view text) {
    const Result<std::string> made = PrintableJson(text);
    return made.ok() ? *made : made.status().message();
  };
  EXPECT_EQ(word("{\"a\":\n [1, \"b\"]}"), "{\"a\":[1,\"b\"]}");
  EXPECT_EQ(word("5"), "5");
  const std::string escape = word("\"\\u001b[31m\\u202e\"");
  EXPECT_EQ(escape.find('\x1b'), escape.npos);
  EXPECT_EQ(escape.find("\xe2\x80\xae"), escape.npos);
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("{} {}"),
        std::string(33, '[') + std::string(33, ']')}) {
    EXPECT_EQ(word(bad), "it is no JSON");
  }
  EXPECT_EQ(word(std::string(32, '[') + std::string(32, ']')),
            std::string(32, '[') + std::string(32, ']'));
  // Brackets within texts are none, whatever marks are in them.
  EXPECT_EQ(word("\"\\\"" + std::string(40, '[') + "\""),
            "\"\\\"" + std::string(40, '[') + "\"");
}

TEST(ControlAnswerTest, Malicious_AnErrorWithoutItsNumberHasNone) {
  for (const char* number : {"", ",\"errno\":\"5\"", ",\"errno\":null",
                             ",\"errno\":[5]", ",\"errno\":5.5"}) {
    const auto answer =
        ParseAnswer(std::string("{\"ok\":false,\"error\":{\"code\":\"system\","
                                "\"message\":\"it said\"") +
                    number + "}}");
    ASSERT_TRUE(answer.ok()) << number;
    EXPECT_EQ(answer->status.error(), 0) << number;
    EXPECT_EQ(answer->status.message(), "it said");
  }
  // Things beside each other are not within each other.
  for (const char* thing : {"{},", "[],", "[{}],"}) {
    std::string many = "{\"ok\":true,\"result\":[";
    for (int i = 0; i < 40; ++i) many += thing;
    EXPECT_TRUE(ParseAnswer(many + "0]}").ok()) << thing;
  }
}

}  // namespace
}  // namespace tracefs
