#include "filters/input/parse.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace tracefs {
namespace {

std::string Parsed(std::string_view text) {
  const auto ast = ParseFilter(text, "f");
  return ast.ok() ? Dump(*ast) : ast.status().message();
}

TEST(ParseTest, PrecedenceIsNotThenAndThenOr) {
  const std::pair<const char*, const char*> cases[] = {
      {"a = 1", "a = 1"},
      {"a=1 OR b=2 AND NOT c=3", "(a = 1 OR (b = 2 AND NOT (c = 3)))"},
      {"(a=1 OR b=2) AND c=3", "((a = 1 OR b = 2) AND c = 3)"},
      {"a=1 && b=2 || !c=3", "((a = 1 AND b = 2) OR NOT (c = 3))"},
      {"a=1 and b=2 or not c in {3}",
       "((a = 1 AND b = 2) OR NOT (c IN { 3 }))"},
      {"a=1 OR (b=2 OR (c=3))", "(a = 1 OR b = 2 OR c = 3)"},
      {"NOT NOT a=1", "a = 1"},
      {"NOT (NOT a=1)", "a = 1"},
      {"!!!(a=1)", "NOT (a = 1)"},
      {"((((a=1))))", "a = 1"},
      {"a=1&&b=2", "(a = 1 AND b = 2)"},
      {"a=x||b=y", "(a = x OR b = y)"},
      {"mapped", "mapped = 1"},
      {"NOT mapped AND a = 1", "(NOT (mapped = 1) AND a = 1)"},
      {"(mapped) or !MAPPED", "(mapped = 1 OR NOT (MAPPED = 1))"},
      {"mapped=0 OR mapped != 1", "(mapped = 0 OR mapped != 1)"},
      {"mapped in { 0 }", "mapped IN { 0 }"},
  };
  for (const auto& [text, dump] : cases) {
    EXPECT_EQ(Parsed(text), dump) << text;
    EXPECT_EQ(Parsed(dump), dump) << "what Dump prints parses to the same";
  }
}

TEST(ParseTest, UnderIsAProcessAndWhatIsBelowIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"under(cname = make)", "(cname = make OR descendant of make)"},
      {"UNDER ( cpid = 7 OR cname IN { a b } )",
       "(cpid = 7 OR descendant of 7 OR cname IN { a, b } OR descendant of a "
       "OR descendant of b)"},
      {"NOT under(cname = sh) AND a = 1",
       "(NOT ((cname = sh OR descendant of sh)) AND a = 1)"},
      {"a = 1 OR under(pid = 7)", "(a = 1 OR pid = 7 OR descendant of 7)"},
  };
  for (const auto& [text, dump] : cases) {
    EXPECT_EQ(Parsed(text), dump) << text;
    EXPECT_EQ(Parsed(dump), dump) << text;
  }
  const std::string no_more =
      "f:1:1: under( ) takes cname and cpid, with = or IN, and OR between "
      "them: no more is known of ancestors";
  for (const char* const text :
       {"under(cname != make)", "under(cuid = 0)", "under(NOT cname = make)",
        "under(cname = a AND cpid = 1)", "under(cname ~ \"c*\")",
        "under(nothing = 1)"}) {
    EXPECT_EQ(Parsed(text), no_more) << text;
  }
  EXPECT_EQ(Parsed("under = make"),
            "f:1:7: expected '(' after 'under', found '='");
  EXPECT_EQ(Parsed("under(cname = make"), "f:1:6: this '(' is never closed");
}

TEST(ParseTest, OperatorsAndValues) {
  const std::pair<const char*, const char*> cases[] = {
      {"a == 1", "a = 1"},
      {"a!=1", "a != 1"},
      {"a<1", "a < 1"},
      {"a<=1", "a <= 1"},
      {"a>1", "a > 1"},
      {"a>=1", "a >= 1"},
      {"a~*.[ch]", "a ~ *.[ch]"},
      {"a ~ !x~", "a ~ !x~"},
      {"a IN { x, y z,}", "a IN { x, y, z }"},
      {"a IN{x}", "a IN { x }"},
      {"a ~ X|Y | Z", "a ~ X | Y | Z"},
      {"a IN { X|Y, Z }", "a IN { X | Y, Z }"},
      {R"(a = "x y\"\\\x01" # comment)", R"(a = "x y\"\\\x01")"},
      {"a = -1", "a = -1"},
      {"# only a comment\n", "# all"},
      {"", "# all"},
      {" \n\t", "# all"},
      {"a # the field\n = # the operator\n 1", "a = 1"},
      {"a = \"AND\"", "a = \"AND\""},
      {"a = \xc3\xa9", "a = \xc3\xa9"},
  };
  for (const auto& [text, dump] : cases) EXPECT_EQ(Parsed(text), dump) << text;
}

TEST(ParseTest, ErrorsNameThePlaceAndTheWord) {
  const std::pair<const char*, const char*> cases[] = {
      {"a",
       "f:1:2: expected an operator (= != < <= > >= IN ~) after 'a', "
       "found the end of the filter"},
      {"a b",
       "f:1:3: expected an operator (= != < <= > >= IN ~) after 'a', "
       "found 'b'"},
      {"a LIKE b",
       "f:1:3: expected an operator (= != < <= > >= IN ~) after "
       "'a', found 'LIKE'"},
      {"a =", "f:1:4: expected a value, found the end of the filter"},
      {"a = = b", "f:1:5: expected a value, found '='"},
      {"a = )", "f:1:5: expected a value, found ')'"},
      {"a = AND b = 1",
       "f:1:5: expected a value, found 'AND' (a name needs "
       "quotes)"},
      {"a = 1 b = 2", "f:1:7: expected AND, OR or the end, found 'b'"},
      {"a = 1 ADN b = 2",
       "f:1:7: expected AND, OR or the end, found 'ADN'; "
       "did you mean 'AND'?"},
      {"a = 1 And b = 2",
       "f:1:7: expected AND, OR or the end, found 'And'; "
       "did you mean 'AND'?"},
      {"a = 1 & b = 2", "f:1:7: expected AND, OR or the end, found '&'"},
      {"a = 1 |", "f:1:8: expected a value, found the end of the filter"},
      {"a = 1 AND",
       "f:1:10: expected a predicate, found the end of the "
       "filter"},
      {"a = 1 AND\n  OR b = 1", "f:2:3: expected a predicate, found 'OR'"},
      {"OR a = 1", "f:1:1: expected a predicate, found 'OR'"},
      {"= 1", "f:1:1: expected a predicate, found '='"},
      {"()", "f:1:2: expected a predicate, found ')'"},
      {"NOT", "f:1:4: expected a predicate, found the end of the filter"},
      {"!= 5", "f:1:1: expected a predicate, found '!'"},
      {"(a = 1", "f:1:1: this '(' is never closed"},
      {"(a = 1 b = 2)", "f:1:8: expected AND, OR or ')', found 'b'"},
      {"a = 1)", "f:1:6: this ')' closes no '('"},
      {"a IN 5", "f:1:6: expected '{' after IN, found '5'"},
      {"a IN { 5", "f:1:6: this '{' is never closed"},
      {"a IN { }", "f:1:6: an empty set matches nothing"},
      {"a IN { , }", "f:1:8: expected a value, found ','"},
      {"a IN { 1,,2 }", "f:1:10: expected a value, found ','"},
      {"a IN { 1; 2 }", "f:1:9: expected a value, found ';'"},
      {"a = \"x", "f:1:5: this string has no closing quote on its line"},
      {"\"a\" = 1", "f:1:1: expected a predicate, found '\"'"},
      {"a = 1 \x1b", "f:1:7: expected AND, OR or the end, found '\\x1b'"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(Parsed(text), message) << text;
  }
}

TEST(ParseTest, PositionsCountFromWhereTheTextStands) {
  const auto ast = ParseFilter(" cuid = 1\n OR x", "t.conf", {7, 30});
  ASSERT_FALSE(ast.ok());
  EXPECT_EQ(ast.status().message().substr(0, 12), "t.conf:8:6: ");
}

TEST(ParseTest, Malicious_SizesAreBounded) {
  const auto starts = [](const std::string& text, std::string_view what) {
    const std::string message = Parsed(text);
    EXPECT_NE(message.find(what), std::string::npos) << message.substr(0, 200);
  };
  starts(std::string(kMaxFilterBytes + 1, ' '), "longer than 1048576 bytes");
  starts(std::string(1000000, '('), "more than 200 parentheses");
  // As many as one likes, because they only turn an answer over.
  EXPECT_EQ(Parsed(std::string(1000000, '!') + "a=1"), "a = 1");
  std::string many = "a=1";
  for (size_t i = 0; i < kMaxFilterPredicates; ++i) many += " OR a=1";
  starts(many, "more than 16384 predicates");
  starts("a = " + std::string(kMaxFilterWordBytes + 1, 'x'),
         "longer than 4096");
  starts(std::string(kMaxFilterWordBytes + 1, 'x'), "longer than 4096");
  std::string values = "a IN {";
  for (size_t i = 0; i <= kMaxFilterValues; ++i) values += "1 ";
  starts(values, "more than 65536 values");
  // The deepest tree there is.
  std::string deep;
  for (size_t i = 0; i < kMaxFilterNesting; ++i) deep += "NOT (a=1 AND b=2 OR ";
  deep += "c=3" + std::string(kMaxFilterNesting, ')');
  EXPECT_TRUE(ParseFilter(deep).ok());
}

TEST(ParseTest, Malicious_CutAnywhereNothingBreaks) {
  const std::string_view text =
      "NOT (cuid = 0 AND name ~ \"*.c\") OR op IN { read, write } # end";
  for (size_t size = 0; size <= text.size(); ++size) {
    const auto ast = ParseFilter(text.substr(0, size));
    if (!ast.ok()) {
      EXPECT_FALSE(ast.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace tracefs
