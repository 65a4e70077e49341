// What one program leaves to another, through an environment.
#include "tracefs/survive/inheritance.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tracefs/base/unique_fd.h"

namespace tracefs::survive {
namespace {

// As execve(2) would pass it on.
std::optional<Inheritance> Passed(const Inheritance& left) {
  for (const std::string& variable : left.Variables()) {
    const size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(),
             variable.substr(equals + 1).c_str(), 1);
  }
  return Inheritance::OfProcess();
}

TEST(Inheritance, IsNoneWhereNothingWasLeft) {
  EXPECT_FALSE(Inheritance::OfProcess().has_value());
}

TEST(Inheritance, PassesOnAnyText) {
  Inheritance left;
  const std::string odd("a=b\n\0\xff'\\ ", 10);
  // More than the kernel takes as one variable.
  const std::string large(300'000, 'x');
  left.Set("odd", odd);
  left.Set("large", large);
  left.Set("empty", "");
  left.SetNumber("number", 0xffffffffffffffff);
  const auto found = Passed(left);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->Text("odd"), odd);
  EXPECT_EQ(found->Text("large"), large);
  EXPECT_TRUE(found->Has("empty"));
  EXPECT_EQ(found->Text("empty"), "");
  EXPECT_EQ(found->Number("number"), 0xffffffffffffffff);
  EXPECT_EQ(found->Text("none"), "");
  EXPECT_EQ(found->Number("odd"), 0u);
  // It is there once.
  EXPECT_FALSE(Inheritance::OfProcess().has_value());
  EXPECT_EQ(std::getenv("TRACEFS_INHERITANCE_1"), nullptr);
}

TEST(Inheritance, SaysWhichFileANumberStoodFor) {
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  Inheritance left;
  ASSERT_TRUE(left.SetFile("null", null.get()).ok());
  EXPECT_FALSE(left.SetFile("closed", 9999).ok());
  const auto found = Passed(left);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->Files(), std::vector<int>{null.get()});
  ASSERT_TRUE(found->File("null").ok());
  EXPECT_EQ(*found->File("null"), null.get());
  EXPECT_FALSE(found->File("zero").ok());
  ::dup2(zero.get(), null.get());
  EXPECT_FALSE(found->File("null").ok());
}

TEST(Inheritance, SurvivesNonsense) {
  ::setenv("TRACEFS_INHERITANCE_0", "a\n=\nb=0\nc=zz\nd=41\n\nfile.x=", 1);
  const auto found = Inheritance::OfProcess();
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->Has("a"));
  EXPECT_FALSE(found->Has("b"));
  EXPECT_FALSE(found->Has("c"));
  EXPECT_EQ(found->Text("d"), "A");
  EXPECT_FALSE(found->File("x").ok());
}

}  // namespace
}  // namespace tracefs::survive
