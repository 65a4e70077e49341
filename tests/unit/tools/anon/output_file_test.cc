#include "tracefs/tools/anon/output_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

namespace tracefs::anonymize {
namespace {

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    std::string name = testing::TempDir() + "anon.XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~OutputFileTest() override { std::filesystem::remove_all(folder_); }
  size_t Files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
};

TEST_F(OutputFileTest, AppearsWhenItIsComplete) {
  auto file = OutputFile::Create(folder_ / "out");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write(AsBytes("abc")).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  ASSERT_TRUE(file->Commit().ok());
  std::ifstream in(folder_ / "out");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "abc");
  EXPECT_EQ(Files(), 1U);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  {
    auto file = OutputFile::Create(folder_ / "out");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write(AsBytes("abc")).ok());
  }
  EXPECT_EQ(Files(), 0U);
}

TEST_F(OutputFileTest, NeverReplacesAFile) {
  std::ofstream(folder_ / "out") << "mine";
  EXPECT_FALSE(OutputFile::Create(folder_ / "out").ok());
  // One that appears meanwhile stays, too.
  auto file = OutputFile::Create(folder_ / "late");
  ASSERT_TRUE(file.ok());
  std::ofstream(folder_ / "late") << "mine";
  EXPECT_FALSE(file->Commit().ok());
  std::ifstream in(folder_ / "late");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "mine");
}

TEST_F(OutputFileTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(OutputFile::Create(folder_ / "none" / "out").status().code(),
            StatusCode::kSystem);
}

// As on a full disk.
TEST_F(OutputFileTest, ARefusedWriteIsAnErrorAndLeavesNothing) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 10'000;
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status;
  {
    auto file = OutputFile::Create(folder_ / "out");
    ASSERT_TRUE(file.ok());
    status = file->Write(AsBytes(std::string(20'000, 'x')));
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), StatusCode::kSystem);
  EXPECT_EQ(Files(), 0U);
}

}  // namespace
}  // namespace tracefs::anonymize
