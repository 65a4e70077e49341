#include "tracefs/command/caret.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace tracefs {
namespace {

TEST(CaretTest, TheLineOfAFilterAndThePlaceInIt) {
  EXPECT_EQ(CaretLines("--filter:1:6: no such", "op = opne"),
            "  op = opne\n"
            "       ^\n");
  EXPECT_EQ(CaretLines("--filter:2:3: no such", "a = 1 OR\n\tb = \xc3\xa4\n"),
            "   b = \xc3\xa4\n"
            "    ^\n");
  // Behind the end of a line.
  EXPECT_EQ(CaretLines("--filter:1:4: expected", "op "),
            "  op \n"
            "     ^\n");
}

TEST(CaretTest, ColumnsAreBytesButPlacesAreCharacters) {
  EXPECT_EQ(CaretLines("--filter:1:9: x", "\xc3\xa4\xc3\xa4 = yz"),
            "  \xc3\xa4\xc3\xa4 = yz\n"
            "        ^\n");
}

TEST(CaretTest, LongLinesAreCutAroundThePlace) {
  const std::string filter =
      std::string(400, 'a') + "!" + std::string(400, 'b');
  EXPECT_EQ(CaretLines("--filter:1:401: x", filter),
            "  " + std::string(50, 'a') + "!" + std::string(24, 'b') + "\n  " +
                std::string(50, ' ') + "^\n");
}

TEST(CaretTest, FilesAreReadAgain) {
  std::string name = "/tmp/caret_testXXXXXX";
  const int fd = ::mkstemp(name.data());
  ASSERT_GE(fd, 0);
  ::close(fd);
  std::ofstream(name) << "one\ntwo thr\n";
  EXPECT_EQ(CaretLines(name + ":2:5: unknown", ""),
            "  two thr\n"
            "      ^\n");
  // It is another one by now.
  EXPECT_EQ(CaretLines(name + ":2:50: unknown", ""), "");
  EXPECT_EQ(CaretLines(name + ":20:1: unknown", ""), "");
  ::unlink(name.c_str());
  EXPECT_EQ(CaretLines(name + ":2:5: unknown", ""), "");
}

TEST(CaretTest, NothingOfAllElse) {
  for (const char* const text :
       {"", "no such file", "tcp:host:1: refused", "--filter:0:1: x",
        "--filter:1:99: x", "/dev/null:1:1: x", "/dev/zero:1:1: x", "/:1:1: x",
        "--filter:99999999999:1: x", "a:b:c:d"}) {
    EXPECT_EQ(CaretLines(text, "op = open"), "") << text;
  }
}

TEST(CaretTest, Malicious_NothingThatATerminalObeys) {
  EXPECT_EQ(CaretLines("--filter:1:3: x", "\x1b[2J\xe2\x80\xae"),
            "  \\x1b[2J\\xe2\\x80\\xae\n"
            "       ^\n");
}

}  // namespace
}  // namespace tracefs
