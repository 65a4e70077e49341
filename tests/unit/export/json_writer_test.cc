// What JsonWriter writes is JSON, checked by another's parser.
#include "tracefs/text/json_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tracefs {
namespace {

TEST(JsonWriterTest, NestsObjectsAndListsWithCommasBetween) {
  std::string text;
  JsonWriter json(&text);
  json.Put("a", uint64_t{UINT64_MAX});
  json.PutSigned("b", -1);
  json.Open("c");
  json.Close();
  json.OpenList("d");
  json.Add(uint64_t{1});
  json.Add("x\"y\n");
  json.Open();
  json.PutTrue("e");
  json.Close();
  json.OpenList();
  json.CloseList();
  json.CloseList();
  json.PutIf("none", "");
  json.PutJson("f", "1.5");
  json.End();
  const auto want = nlohmann::ordered_json{
      {"a", UINT64_MAX},
      {"b", -1},
      {"c", nlohmann::ordered_json::object()},
      {"d", {1, "x\"y\n", {{"e", true}}, nlohmann::ordered_json::array()}},
      {"f", 1.5}};
  EXPECT_EQ(nlohmann::ordered_json::parse(text), want) << text;
}

TEST(JsonWriterTest, BytesThatAreNotUtf8AreReplacedOrInBase64) {
  std::string text;
  JsonWriter json(&text);
  json.Put("shown", "a\xff");
  json.PutExact("exact", "a\xff");
  json.PutExact("utf8", "ä");
  json.PutBytes("bytes", "ab");
  json.OpenList("list_b64");
  json.AddBytes("a\xff");
  json.CloseList();
  json.End();
  const auto read = nlohmann::json::parse(text);
  EXPECT_EQ(read["shown"], "a\\xff");
  EXPECT_EQ(read["exact_b64"], "Yf8=");
  EXPECT_EQ(read["utf8"], "ä");
  EXPECT_EQ(read["bytes_b64"], "YWI=");
  EXPECT_EQ(read["list_b64"][0], "Yf8=");
}

TEST(JsonWriterTest, GoesOnWithinAnObjectThatWasBegunElsewhere) {
  for (const std::string begun : {"{", "{\"a\":1", ""}) {
    std::string text = begun;
    JsonWriter::Within(&text).Put("b", uint64_t{2});
    const auto read =
        nlohmann::json::parse((begun.empty() ? "{" : "") + text + "}");
    EXPECT_EQ(read["b"], 2) << text;
  }
}

}  // namespace
}  // namespace tracefs
