// Requests: what may be in one, and that anything else is refused in words.
#include "tracefs/control/request.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tracefs {
namespace {

std::string ErrorOf(std::string_view line) {
  ControlRequest request;
  const Status status = ControlRequest::Parse(line, &request);
  EXPECT_EQ(status.code(), StatusCode::kInvalid) << line;
  return status.message();
}

TEST(ControlRequestTest, TakesStringsNumbersAndTables) {
  ControlRequest r;
  ASSERT_TRUE(ControlRequest::Parse(
                  R"({"id":7,"command":"add","config":"{ {} {file=x} }",)"
                  R"("tracer":3,"users":{"root":0,"me":1000},"groups":{},)"
                  R"("later":4})",
                  &r)
                  .ok());
  EXPECT_EQ(r.id, 7u);
  EXPECT_EQ(r.command, "add");
  EXPECT_EQ(*r.Text("config"), "{ {} {file=x} }");
  EXPECT_EQ(*r.Number("tracer"), 3u);
  EXPECT_EQ(r.NamesOf("users").at("me"), 1000u);
  EXPECT_TRUE(r.NamesOf("groups").empty());
  EXPECT_TRUE(r.NamesOf("nothing").empty());
  EXPECT_EQ(*r.Number("later"), 4u);
  EXPECT_TRUE(
      r.CheckMembers({"config", "tracer", "users", "groups", "later"}).ok());
}

TEST(ControlRequestTest, NothingIsIgnored) {
  ControlRequest r;
  ASSERT_TRUE(
      ControlRequest::Parse(R"({"command":"list","verbose":"yes"})", &r).ok());
  EXPECT_EQ(r.CheckMembers({}).message(), "request: list takes no 'verbose'");
  ControlRequest table;
  ASSERT_TRUE(
      ControlRequest::Parse(R"({"command":"list","users":{}})", &table).ok());
  EXPECT_EQ(table.CheckMembers({}).message(), "request: list takes no 'users'");
}

TEST(ControlRequestTest, MissingMembersAreNamed) {
  ControlRequest r;
  ASSERT_TRUE(
      ControlRequest::Parse(R"({"command":"stop","tracer":4294967296})", &r)
          .ok());
  EXPECT_EQ(r.Number("tracer").status().message(),
            "request: stop needs the number 'tracer', below 2^32");
  EXPECT_EQ(r.Text("filter").status().message(),
            "request: stop needs the string 'filter'");
}

TEST(ControlRequestTest, ANumberThatIsNotThereIsNone) {
  ControlRequest r;
  ASSERT_TRUE(
      ControlRequest::Parse(R"({"command":"stop","tracer":4294967295})", &r)
          .ok());
  EXPECT_EQ(*r.Number("tracer"), 4294967295u);
  EXPECT_EQ(r.Number("other").status().message(),
            "request: stop needs the number 'other', below 2^32");
  EXPECT_EQ(r.CheckMembers({}).message(), "request: stop takes no 'tracer'");
}

TEST(ControlRequestTest, Malicious_EachMemberComesOnceAndIsOfItsKind) {
  for (const std::string member :
       {R"("command":"a")", R"("id":1)", R"("text":"a")", R"("number":1)",
        R"("table":{})"}) {
    const std::string name = member.substr(1, member.find('"', 1) - 1);
    EXPECT_NE(ErrorOf("{" + member + "," + member + "}").find("is there twice"),
              std::string::npos)
        << name;
  }
  EXPECT_NE(ErrorOf(R"({"command":"a","t":{"b":1,"b":2}})").find("twice"),
            std::string::npos);
  for (const std::string bad :
       {R"({"id":{},"command":"a"})", R"({"command":{}})"}) {
    EXPECT_NE(ErrorOf(bad).find("an object"), std::string::npos) << bad;
  }
}

TEST(ControlRequestTest, Malicious_WrongFormIsRefused) {
  EXPECT_EQ(ErrorOf(""), "request: not JSON at byte 1");
  EXPECT_EQ(ErrorOf("[]"), "request: an array where an object was expected");
  EXPECT_EQ(ErrorOf("3"), "request: a number where an object was expected");
  EXPECT_EQ(ErrorOf("{}"), "request: no \"command\"");
  EXPECT_EQ(ErrorOf(R"({"id":1})"), "request: no \"command\"");
  EXPECT_EQ(ErrorOf(R"({"command":3})"), "request: no \"command\"");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":[1]})"),
            "request: an array is no value for 'x'");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":null})"),
            "request: null is no value for 'x'");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":true})"),
            "request: true or false is no value for 'x'");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":-1})"),
            "request: a negative number is no value for 'x'");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":1.5})"),
            "request: a fraction or a number too large is no value for 'x'");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":99999999999999999999})"),
            "request: a fraction or a number too large is no value for 'x'");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":{"y":"z"}})"),
            "request: a string is no value for 'y'");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":{"y":{}}})"),
            "request: an object is no value for 'y'");
  EXPECT_EQ(ErrorOf(R"({"command":{}})"),
            "request: an object is no value for 'command'");
  EXPECT_EQ(ErrorOf(R"({"id":"1","command":"a"})"),
            "request: a string is no value for 'id'");
  EXPECT_EQ(ErrorOf(R"({"command":"a","x":1,"x":2})"),
            "request: 'x' is there twice");
  EXPECT_EQ(ErrorOf(R"({"command":"a","command":"b"})"),
            "request: 'command' is there twice");
  EXPECT_EQ(ErrorOf(R"({"command":"a"} x)"), "request: not JSON at byte 17");
  EXPECT_EQ(ErrorOf("{\"command\":\"\xff\"}"), "request: not JSON at byte 13");
}

TEST(ControlRequestTest, IdOfABadRequestIsKnown) {
  ControlRequest r;
  EXPECT_FALSE(
      ControlRequest::Parse(R"({"id":9,"command":"a","x":[]})", &r).ok());
  EXPECT_EQ(r.id, 9u);
}

TEST(ControlRequestTest, Malicious_SizesAreBounded) {
  // Nesting ends at the second level, however deep the text goes.
  std::string deep = R"({"command":"a","x":)";
  for (int i = 0; i < 1000000; ++i) deep += "{\"x\":";
  EXPECT_EQ(ErrorOf(deep), "request: an object is no value for 'x'");
  EXPECT_EQ(ErrorOf(std::string(1000000, '[')),
            "request: an array where an object was expected");
  std::string many = "{\"command\":\"a\"";
  for (size_t i = 0; i < kMaxRequestMembers; ++i) {
    many += ",\"m" + std::to_string(i) + "\":1";
  }
  EXPECT_EQ(ErrorOf(many + '}'), "request: too many members");
  std::string table = "{\"command\":\"a\",\"users\":{\"u\":1";
  for (size_t i = 0; i < kMaxTableMembers; ++i) {
    table += ",\"" + std::to_string(i) + "\":1";
  }
  EXPECT_EQ(ErrorOf(table + "}}"), "request: too many members");
}

TEST(ControlRequestTest, Malicious_CutOrChangedAnywhereIsHandled) {
  const std::string good =
      R"({"id":7,"command":"add","config":"x\n\u00e9","users":{"root":0}})";
  for (size_t i = 0; i < good.size(); ++i) {
    ControlRequest r;
    EXPECT_FALSE(ControlRequest::Parse(good.substr(0, i), &r).ok()) << i;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int n = 0; n < 3; ++n) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    ControlRequest r;
    static_cast<void>(ControlRequest::Parse(bad, &r));
  }
}

}  // namespace
}  // namespace tracefs
