#include "filters/input/glob.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/slow_filter.h"

namespace tracefs {
namespace {

using testing::GlobSlowly;

bool Matches(std::string_view pattern, std::string_view text,
             GlobKind kind = GlobKind::kName) {
  const auto glob = Glob::Compile(pattern, kind);
  EXPECT_TRUE(glob.ok()) << pattern;
  return glob.ok() && glob->Matches(text);
}

TEST(GlobTest, NamesAreMatchedAsAWhole) {
  EXPECT_TRUE(Matches("*.tex", "foo.tex"));
  EXPECT_TRUE(Matches("*.tex", ".tex"));
  EXPECT_FALSE(Matches("*.tex", "foo.text"));
  EXPECT_TRUE(Matches("lib*.so*", "libz.so.1"));
  EXPECT_TRUE(Matches("?", "\xff"));
  EXPECT_FALSE(Matches("?", ""));
  EXPECT_TRUE(Matches("[a-c]x", "bx"));
  EXPECT_FALSE(Matches("[!a-c]x", "bx"));
  EXPECT_TRUE(Matches("[^a-c]x", "dx"));
  EXPECT_TRUE(Matches("[]]", "]"));
  EXPECT_TRUE(Matches("[a-]", "-"));
  EXPECT_TRUE(Matches("[\\]]", "]"));
  EXPECT_TRUE(Matches("\\*", "*"));
  EXPECT_FALSE(Matches("\\*", "a"));
  EXPECT_TRUE(Matches("*", ".hidden"));
  EXPECT_TRUE(Matches("ab*ba", "abba"));
  EXPECT_FALSE(Matches("ab*ba", "aba"));
}

TEST(GlobTest, PathsKeepComponentsApart) {
  const auto path = [](std::string_view pattern, std::string_view text) {
    return Matches(pattern, text, GlobKind::kPath);
  };
  EXPECT_TRUE(path("/d/*", "/d/e"));
  EXPECT_FALSE(path("/d/*", "/d/e/a"));
  EXPECT_TRUE(path("/d/**", "/d/e/a"));
  EXPECT_FALSE(path("/d/**", "/d"));
  EXPECT_TRUE(path("/d/**/a", "/d/e/a"));
  EXPECT_TRUE(path("/d/**/a", "/d/a"));
  EXPECT_FALSE(path("/d/**/a", "/da"));
  EXPECT_FALSE(path("/d/**/a", "/d/xa"));
  EXPECT_TRUE(path("**/a", "/a"));
  EXPECT_TRUE(path("**.c", "/d/x.c"));
  EXPECT_FALSE(path("/d?e", "/d/e"));
  EXPECT_FALSE(path("/d[/]e", "/d/e"));
  EXPECT_FALSE(path("/d[!x]e", "/d/e"));
  EXPECT_TRUE(path("/d/*/**/b", "/d/x/b"));
}

TEST(GlobTest, MalformedPatternsAreRefused) {
  for (const char* pattern :
       {"[", "[a", "[]", "[!", "[!]", "a\\", "[\\", "[a-", "[a\\"}) {
    EXPECT_FALSE(Glob::Compile(pattern, GlobKind::kName).ok()) << pattern;
  }
  EXPECT_FALSE(
      Glob::Compile(std::string(Glob::kMaxBytes + 1, 'a'), GlobKind::kName)
          .ok());
}

// All strings over `alphabet` of up to `length` bytes.
void ForEachString(std::string_view alphabet, size_t length,
                   const std::function<void(const std::string&)>& visit,
                   const std::string& prefix = "") {
  visit(prefix);
  if (length == 0) return;
  for (const char c : alphabet) {
    ForEachString(alphabet, length - 1, visit, prefix + c);
  }
}

TEST(GlobTest, AgreesWithTheObviousMatcherOnTheWholeSmallWorld) {
  std::vector<std::string> texts;
  ForEachString("a/b", 5, [&](const std::string& s) { texts.push_back(s); });
  for (const GlobKind kind : {GlobKind::kName, GlobKind::kPath}) {
    ForEachString("a*/?", 6, [&](const std::string& pattern) {
      const auto glob = Glob::Compile(pattern, kind);
      ASSERT_TRUE(glob.ok()) << pattern;
      for (const std::string& text : texts) {
        ASSERT_EQ(glob->Matches(text),
                  GlobSlowly(pattern, text, kind == GlobKind::kPath))
            << pattern << " on " << text;
      }
    });
    ForEachString("a[!-]", 6, [&](const std::string& pattern) {
      const auto glob = Glob::Compile(pattern, kind);
      if (!glob.ok()) return;
      for (const std::string text :
           {"a", "b", "-", "!", "aa", "a-", "[", "a]", "aaa", "/"}) {
        ASSERT_EQ(glob->Matches(text),
                  GlobSlowly(pattern, text, kind == GlobKind::kPath))
            << pattern << " on " << text;
      }
    });
  }
}

TEST(GlobTest, LongPatternsCrossWordBorders) {
  for (size_t n = 1; n < 400; n += 7) {
    const std::string stem(n, 'a');
    EXPECT_TRUE(Matches("*" + stem + "?b*", "xx" + stem + "cbyy"));
    EXPECT_FALSE(Matches("*" + stem + "?b*", "xx" + stem + "byy"));
    EXPECT_TRUE(Matches("/" + stem + "/**/" + stem, "/" + stem + "/" + stem,
                        GlobKind::kPath));
    EXPECT_TRUE(Matches("/" + stem + "/**/" + stem, "/" + stem + "/q/r/" + stem,
                        GlobKind::kPath));
    EXPECT_FALSE(Matches("/" + stem + "/**/" + stem, "/" + stem + stem,
                         GlobKind::kPath));
  }
}

// A backtracking matcher would not come back from this one.
TEST(GlobTest, Malicious_NoPatternIsSlow) {
  std::string pattern;
  for (int i = 0; i < 250; ++i) pattern += "*a";
  const std::string text(4000, 'a');
  for (const GlobKind kind : {GlobKind::kName, GlobKind::kPath}) {
    EXPECT_FALSE(Matches(pattern + "b", text, kind));
    EXPECT_TRUE(Matches(pattern, text, kind));
    EXPECT_FALSE(Matches("**/" + pattern + "/**/b", text, kind));
  }
}

}  // namespace
}  // namespace tracefs
