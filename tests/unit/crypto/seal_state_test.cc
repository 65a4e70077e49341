// The sealing state: each epoch once, and never back.
#include "tracefs/crypto/seal_state.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/hex.h"
#include "tracefs/crypto/key_source.h"

namespace tracefs {
namespace {

SecretKey Root() {
  SecretKey root;
  root.get()[0] = std::byte{42};
  return root;
}

class SealStateTest : public testing::Test {
 protected:
  SealStateTest() : path_(folder_.Path("state")) {
    EXPECT_TRUE(SealState::Create(path_, Root().get()).ok());
  }

  TempFolder folder_;
  std::string path_;
};

TEST_F(SealStateTest, EpochsAreTheLeavesOfTheVerifySecret) {
  KeyTreeReader reader(Root().get());
  auto state = SealState::Open(path_);
  ASSERT_TRUE(state.ok()) << state.status().message();
  for (uint64_t number = 0; number < 20; ++number) {
    // As if the daemon had been restarted now and then.
    if (number % 3 == 0) state = SealState::Open(path_);
    const auto epoch = state->Take();
    ASSERT_TRUE(epoch.ok()) << epoch.status().message();
    EXPECT_EQ(epoch->number, number);
    EXPECT_EQ(epoch->verify_id, IdOfKey(Root().get()));
    EXPECT_TRUE(EqualSecrets(epoch->key.get(), reader.KeyOf(number)));
  }
}

TEST_F(SealStateTest, WhoHasTheOldFileOpenFindsNoKeyInIt) {
  const UniqueFd old(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const auto size = TempFolder::Read(path_).size();
  ASSERT_TRUE(SealState::Open(path_)->Take().ok());
  std::string left(size, 'x');
  ASSERT_EQ(::pread(old.get(), left.data(), size, 0),
            static_cast<ssize_t>(size));
  EXPECT_EQ(left, std::string(size, '\0'));
}

TEST_F(SealStateTest, OpeningTakesNothing) {
  const std::string before = TempFolder::Read(path_);
  ASSERT_TRUE(SealState::Open(path_).ok());
  EXPECT_EQ(TempFolder::Read(path_), before);
}

TEST_F(SealStateTest, TheFileNeverHoldsAKeyThatWasTaken) {
  auto state = SealState::Open(path_);
  for (int i = 0; i < 10; ++i) {
    const auto epoch = state->Take();
    ASSERT_TRUE(epoch.ok());
    EXPECT_EQ(TempFolder::Read(path_).find(Hex(epoch->key.get())),
              std::string::npos);
    EXPECT_EQ(TempFolder::Read(path_).find(Hex(Root().get())),
              std::string::npos);
  }
  struct stat st;
  ASSERT_EQ(::stat(path_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
}

TEST_F(SealStateTest, ProcessesThatShareAStateGetEpochsOfTheirOwn) {
  constexpr int kProcesses = 8;
  constexpr int kEach = 10;
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      int failures = 0;
      for (int i = 0; i < kEach && failures == 0; ++i) {
        // Opened while others replace it.
        auto state = SealState::Open(path_);
        if (!state.ok()) ::_exit(1);
        const auto epoch = state->Take();
        if (!epoch.ok() ||
            ::write(pipe_fds[1], &epoch->number, sizeof epoch->number) !=
                sizeof epoch->number) {
          ++failures;
        }
      }
      ::_exit(failures);
    }
    children.push_back(child);
  }
  ::close(pipe_fds[1]);
  std::set<uint64_t> seen;
  uint64_t number;
  while (::read(pipe_fds[0], &number, sizeof number) == sizeof number) {
    EXPECT_TRUE(seen.insert(number).second) << "twice: " << number;
  }
  ::close(pipe_fds[0]);
  for (const pid_t child : children) {
    int status;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(seen.size(), size_t{kProcesses * kEach});
}

TEST_F(SealStateTest, TheLastNumberIsNotTakenAgainAndAgain) {
  const std::string head = TempFolder::Read(path_);
  const std::string front = head.substr(0, head.find("\n64 0 ") + 1);
  const std::string seed = ' ' + Hex(Root().get()) + '\n';
  const std::string last = "0 18446744073709551615" + seed;
  auto state = SealState::Open(folder_.Write("s", front + last));
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_NE(state->Take().status().message().find("used up"),
            std::string::npos);
  state = SealState::Open(
      folder_.Write("s", front + "0 18446744073709551614" + seed + last));
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->Take()->number, ~uint64_t{0} - 1);
  EXPECT_FALSE(state->Take().ok());
}

TEST_F(SealStateTest, ALeftoverOfACrashDoesNotMatter) {
  folder_.Write(".state.next", "half a st");
  auto state = SealState::Open(path_);
  ASSERT_TRUE(state.ok());
  EXPECT_TRUE(state->Take().ok());
}

TEST_F(SealStateTest, ARenamedFolderDoesNotMatter) {
  // As when a mount covers the folder: the state found by its path is another.
  TempFolder outer;
  const std::string inside = outer.Path("a");
  ASSERT_EQ(::mkdir(inside.c_str(), 0700), 0);
  ASSERT_TRUE(SealState::Create(inside + "/s", Root().get()).ok());
  auto state = SealState::Open(inside + "/s");
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(::rename(inside.c_str(), outer.Path("b").c_str()), 0);
  EXPECT_TRUE(state->Take().ok());
  EXPECT_EQ(SealState::Open(outer.Path("b") + "/s")->Take()->number, 1u);
}

// No key is handed out whose successor is not on the disk.
TEST_F(SealStateTest, AStateThatCannotBeWrittenGivesNoKey) {
  auto state = SealState::Open(path_);
  ASSERT_TRUE(state.ok());
  const std::string before = TempFolder::Read(path_);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit nothing{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &nothing);
    ::_exit(state->Take().ok() ? 1 : 0);
  }
  int status;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(TempFolder::Read(path_), before);
  const auto files = std::filesystem::directory_iterator(
      std::filesystem::path(path_).parent_path());
  EXPECT_EQ(std::distance(files, {}), 1) << "something was left behind";
  const auto epoch = state->Take();
  ASSERT_TRUE(epoch.ok());
  EXPECT_EQ(epoch->number, 0u);
}

TEST_F(SealStateTest, WhereNoneCanBeMadeItIsAnError) {
  const Status status =
      SealState::Create(folder_.Path("none") + "/state", Root().get());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error(), ENOENT);
  EXPECT_TRUE(status.message().starts_with("sealing state '"))
      << status.message();
  EXPECT_EQ(SealState::Open(folder_.Path("none") + "/state").status().error(),
            ENOENT);
  EXPECT_EQ(SealState::Open(folder_.Path("other")).status().error(), ENOENT);
}

TEST_F(SealStateTest, OpenToOthersIsRefused) {
  ::chmod(path_.c_str(), 0640);
  const auto state = SealState::Open(path_);
  ASSERT_FALSE(state.ok());
  EXPECT_NE(state.status().message().find("chmod 600"), std::string::npos);
}

TEST_F(SealStateTest, EachBitForOthersIsRefused) {
  for (const mode_t bit : {001, 002, 004, 010, 020, 040}) {
    ASSERT_EQ(::chmod(path_.c_str(), 0600 | bit), 0);
    EXPECT_EQ(SealState::Open(path_).status().code(), StatusCode::kInvalid)
        << bit;
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_TRUE(SealState::Open(path_).ok());
}

TEST_F(SealStateTest, CreateNeverReplaces) {
  const Status status = SealState::Create(path_, Root().get());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kSystem);
}

TEST_F(SealStateTest, Malicious_EveryCutIsRefused) {
  const std::string good = TempFolder::Read(path_);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(
        SealState::Open(folder_.Write("cut", good.substr(0, size))).ok())
        << size;
  }
}

TEST_F(SealStateTest, AnOrdinaryKeyIsNoState) {
  const auto state = SealState::Open(
      folder_.Write("k", KeyLine(KeyKind::kSecret, Root().get())));
  ASSERT_FALSE(state.ok());
  EXPECT_NE(state.status().message().find("tracefs-keygen seal"),
            std::string::npos);
  // And a state is not an ordinary key.
  const auto key = ReadKeys({KeySource::Place::kFile, path_});
  ASSERT_FALSE(key.ok());
  EXPECT_NE(key.status().message().find("sealing state of a host"),
            std::string::npos);
}

TEST_F(SealStateTest, Malicious_FilesOfOthersAreRefused) {
  const auto refusal = [&] {
    return SealState::Open(path_).status().message();
  };
  for (const mode_t mode : {0640, 0604, 0620, 0602}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_NE(refusal().find("by others"), std::string::npos) << mode;
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  const std::string other = folder_.Path("other");
  ASSERT_EQ(::link(path_.c_str(), other.c_str()), 0);
  EXPECT_NE(refusal().find("2 names"), std::string::npos);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ASSERT_EQ(::symlink("other", path_.c_str()), 0);
  EXPECT_NE(refusal().find("not a link"), std::string::npos);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ASSERT_EQ(::rename(other.c_str(), path_.c_str()), 0);
  EXPECT_EQ(refusal(), "ok");
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal().find("belongs to user 65534"), std::string::npos);
}

}  // namespace
}  // namespace tracefs
