// What /proc tells of a process whose files have odd names, or none any more.
#include "tracefs/process/task_facts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tracefs {
namespace {

namespace fs = std::filesystem;

class FileLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "tracefs-facts-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = fs::canonical(name);
  }
  void TearDown() override {
    End();
    fs::remove_all(folder_);
  }

  // Runs a copy of sleep(1) by that name, in a folder of the same name.
  void Run(const std::string& name) {
    program_ = folder_ / name;
    place_ = folder_ / "in" / name;
    fs::create_directories(place_);
    fs::copy_file("/bin/sleep", program_);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      if (::chdir(place_.c_str()) == 0) {
        ::execl(program_.c_str(), "sleep", "1000", nullptr);
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    char byte;
    // Closed when the program runs.
    EXPECT_EQ(::read(ends[0], &byte, 1), 0);
    ::close(ends[0]);
  }
  void End() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  TaskFacts Facts() const {
    return ReadTaskFacts(static_cast<uint32_t>(child_), false);
  }

  fs::path folder_;
  fs::path program_;
  fs::path place_;
  pid_t child_ = -1;
};

TEST_F(FileLinkTest, AFileThatIsGoneHasItsLastName) {
  // A name may end like the mark.
  for (const char* name : {"plain", "x (deleted)"}) {
    Run(name);
    EXPECT_EQ(Facts().exe, program_);
    EXPECT_EQ(Facts().cwd, place_);
    fs::remove(program_);
    fs::remove(place_);
    EXPECT_EQ(Facts().exe, program_);
    EXPECT_EQ(Facts().cwd, place_);
    End();
  }
}

TEST_F(FileLinkTest, OneOfSeveralNamesMayBeGone) {
  Run("one");
  fs::create_hard_link(program_, folder_ / "another");
  fs::remove(program_);
  EXPECT_EQ(Facts().exe, program_);
  // And another file may be called as the mark says.
  fs::copy_file("/bin/sleep", program_.string() + " (deleted)");
  EXPECT_EQ(Facts().exe, program_);
}

}  // namespace
}  // namespace tracefs
