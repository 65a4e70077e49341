// A daemon in somebody else's hand at its helpers' sockets: it sends
// everything, and they do what their lists have (watchdog_process.h, looker.h).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/helper_pids.h"
#include "tests/unit/mount/scratch_dir.h"
#include "tracefs/base/passed_files.h"
#include "tracefs/daemon/looker.h"
#include "tracefs/daemon/mount_info.h"
#include "tracefs/daemon/watchdog.h"
#include "tracefs/daemon/watchdog_process.h"

namespace tracefs {
namespace {

bool Soon(const std::function<bool()>& condition) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

struct Said {
  int error = -1;
  std::vector<UniqueFd> files;
};

// A process that runs `helper` on the other end of `socket`.
class Helper {
 public:
  explicit Helper(const std::function<void(UniqueFd)>& helper) {
    std::array<int, 2> ends;
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
        0) {
      return;
    }
    socket.Reset(ends[0]);
    UniqueFd theirs(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      socket.Reset();
      helper(std::move(theirs));
      ::_exit(9);
    }
  }
  ~Helper() {
    socket.Reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  bool alive() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

  UniqueFd socket;

 private:
  pid_t pid_ = -1;
};

class HostileDaemonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!scratch_.MountTmpfs("m")) GTEST_SKIP() << "cannot mount here";
    // It says what it was run with, and ends when it may.
    std::ofstream(program())
        << "#!/bin/sh\necho \"begun $*\" >> '" << scratch_.Path("runs")
        << "'\nwhile [ -e '" << scratch_.Path("hold")
        << "' ]; do sleep 0.02; done\n";
    ::chmod(program().c_str(), 0755);
  }

  std::string point() const { return scratch_.Path("m"); }
  std::string program() const { return scratch_.Path("ctl"); }

  void RunIt(UniqueFd socket) {
    const UniqueFd parent(
        static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), /*flags=*/0)));
    RunWatchdog(
        std::move(socket), {.pid = ::getppid(), .pidfd = parent.get()},
        {.reload_program = program(), .reload_config = "/given/before.conf"});
  }
  std::unique_ptr<Helper> Watchdog() {
    return std::make_unique<Helper>(
        [this](UniqueFd socket) { RunIt(std::move(socket)); });
  }
  std::unique_ptr<Helper> Guarding() {
    auto watchdog = Watchdog();
    EXPECT_EQ(Ask(*watchdog, 'g' + point()).error, 0);
    return watchdog;
  }

  static Said Ask(const Helper& helper, const std::string& question,
                  std::span<const int> files = {}) {
    Said said;
    if (SendWithFiles(helper.socket.get(), AsBytes(question), files) < 0) {
      return said;
    }
    std::array<char, sizeof said.error + kMaxWatchdogText> answer;
    const ssize_t n = ReceiveWithFiles(
        helper.socket.get(), std::as_writable_bytes(std::span(answer)),
        &said.files);
    if (n >= static_cast<ssize_t>(sizeof said.error)) {
      std::memcpy(&said.error, answer.data(), sizeof said.error);
    }
    return said;
  }

  std::vector<std::string> Runs() const {
    std::vector<std::string> lines;
    std::ifstream in(scratch_.Path("runs"));
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(scratch_.path())) {
      names.insert(entry.path());
    }
    return names;
  }
  bool IsMounted() const {
    const auto place = FindMount(point());
    return place && place->mounted;
  }

  ScratchDir scratch_;
};

// All first bytes, with texts that older and newer requests might take.
TEST_F(HostileDaemonTest, Malicious_TheWatchdogDoesNothingThatIsNotOnItsList) {
  std::vector<std::string> texts = {"",
                                    "x",
                                    program(),
                                    scratch_.Path("new"),
                                    "/",
                                    "j" + scratch_.Path("log"),
                                    "c",
                                    "c-1",
                                    "c0x",
                                    "c 0",
                                    "c2147483647",
                                    "c99999999999999999999",
                                    "z0",
                                    std::string("\0", 1),
                                    std::string("c0\0", 3),
                                    std::string(4096, 'x'),
                                    std::string(70'000, 'x')};
  const std::string bare = "ulsckrb";
  for (const bool guarding : {false, true}) {
    const auto watchdog = guarding ? Guarding() : Watchdog();
    const auto before = Files();
    for (int byte = 0; byte < 256; ++byte) {
      const char first = static_cast<char>(byte);
      for (const std::string& text : texts) {
        if (text.empty() && bare.find(first) != bare.npos) continue;
        const Said said = Ask(*watchdog, first + text);
        EXPECT_TRUE(said.files.empty()) << byte << ' ' << text;
        if (first == 'g') {
          EXPECT_GT(said.error, 0) << text;
        } else if (first == 'e') {
          // An echo, of what is no more than a text: nothing is done with it.
          EXPECT_TRUE(said.error == 0 || said.error == EINVAL) << text;
        } else {
          EXPECT_TRUE(said.error == EINVAL ||
                      (first == 't' && said.error == ENODEV))
              << byte << ' ' << text << ": " << said.error;
        }
      }
    }
    EXPECT_EQ(Files(), before);
    EXPECT_TRUE(Runs().empty());
    EXPECT_TRUE(IsMounted());
    EXPECT_TRUE(watchdog->alive());
  }
}

TEST_F(HostileDaemonTest, Malicious_DescriptorsAreNotTaken) {
  const auto watchdog = Guarding();
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const std::vector<int> many(kMaxPassedFiles, writing.get());
  for (const char first : {'x', 'r', 't'}) {
    EXPECT_NE(Ask(*watchdog, std::string(1, first), many).error, -1);
  }
  writing.Reset();
  char byte;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0);
}

TEST_F(HostileDaemonTest, AReloadRunsWhatWasGivenBefore) {
  const auto watchdog = Guarding();
  EXPECT_EQ(Ask(*watchdog, "r").error, 0);
  ASSERT_TRUE(Soon([&] { return !Runs().empty(); }));
  EXPECT_EQ(Runs()[0], "begun " + point() + " reload /given/before.conf");
}

TEST_F(HostileDaemonTest, Malicious_AFloodOfReloadsRunsOneAtATime) {
  std::ofstream(scratch_.Path("hold")) << "";
  const auto watchdog = Guarding();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(Ask(*watchdog, "r").error, 0);
  ASSERT_TRUE(Soon([&] { return !Runs().empty(); }));
  // It still answers, and the others wait.
  EXPECT_EQ(Ask(*watchdog, "x").error, EINVAL);
  EXPECT_EQ(Runs().size(), 1U);
  std::filesystem::remove(scratch_.Path("hold"));
  ASSERT_TRUE(Soon([&] { return Runs().size() == 2; }));
  // What ran was asked for once more than that: the last one had seen all.
  EXPECT_EQ(Ask(*watchdog, "r").error, 0);
  ASSERT_TRUE(Soon([&] { return Runs().size() >= 3; }));
  EXPECT_EQ(Runs().size(), 3U);
}

TEST_F(HostileDaemonTest, Malicious_AFloodOfLookersHasAnEnd) {
  const auto watchdog = Guarding();
  std::vector<UniqueFd> lookers;
  for (int i = 0; i < 100; ++i) {
    Said said = Ask(*watchdog, "k");
    if (said.error == EAGAIN) continue;
    ASSERT_EQ(said.error, 0);
    ASSERT_EQ(said.files.size(), 1U);
    lookers.push_back(std::move(said.files[0]));
  }
  EXPECT_EQ(lookers.size(), kMostLookers);
  // One that has ended makes room for another.
  lookers.pop_back();
  EXPECT_TRUE(Soon([&] { return Ask(*watchdog, "k").error == 0; }));
}

TEST_F(HostileDaemonTest, Malicious_AnswersThatAreNotReadKeepNobody) {
  const auto watchdog = Guarding();
  const char byte = 'x';
  while (::send(watchdog->socket.get(), &byte, 1,
                MSG_DONTWAIT | MSG_NOSIGNAL) == 1) {
  }
  EXPECT_EQ(errno, EAGAIN);
  watchdog->socket.Reset();
  EXPECT_TRUE(Soon([&] { return !IsMounted(); }));
}

TEST_F(HostileDaemonTest, AnEmptyMessageEndsTheConversation) {
  const auto watchdog = Guarding();
  ASSERT_EQ(::send(watchdog->socket.get(), "", 0, MSG_NOSIGNAL), 0);
  EXPECT_TRUE(Soon([&] { return !IsMounted(); }));
}

pid_t LookerOf(pid_t keeper) {
  return ChildNamed(ChildNamed(keeper, "tracefs-watch"), "tracefs-look");
}

// Not hostile, but gone: another takes its place.
TEST_F(HostileDaemonTest, ALookerThatWasKilledIsReplaced) {
  const auto guard = tracefs::Watchdog::Start();
  ASSERT_TRUE(guard.ok());
  ASSERT_TRUE((*guard)->Guard(point()).ok());
  LookerLink link([&] { return (*guard)->StartLooker(); });
  ASSERT_TRUE(link.there());
  const auto self = static_cast<uint32_t>(::getpid());
  const std::string exe = std::filesystem::read_symlink("/proc/self/exe");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Soon([&] { return link.Ask(self, Look::kExe) == exe; }));
    const pid_t looker = LookerOf((*guard)->pid());
    ASSERT_NE(looker, 0);
    ASSERT_TRUE(Kill(looker));
    ASSERT_TRUE(Soon([&] { return LookerOf((*guard)->pid()) == 0; }));
  }
  EXPECT_TRUE(Soon([&] { return link.Ask(self, Look::kExe) == exe; }));
}

struct Question {
  uint32_t pid;
  uint32_t what;
};

TEST(HostileDaemonLookerTest, Malicious_ItAnswersThreeQuestionsAndNoOther) {
  const Helper looker([](UniqueFd socket) { RunLooker(std::move(socket)); });
  const auto answer = [&](uint32_t pid, uint32_t what) -> std::string {
    const Question question{pid, what};
    std::vector<char> room(1 + kMaxLook);
    if (::send(looker.socket.get(), &question, sizeof question, MSG_NOSIGNAL) !=
        sizeof question) {
      return "gone";
    }
    const ssize_t n = ::recv(looker.socket.get(), room.data(), room.size(), 0);
    return n < 1 ? "gone" : std::string(room.data(), static_cast<size_t>(n));
  };
  const auto self = static_cast<uint32_t>(::getpid());
  EXPECT_EQ(answer(self, 'x'),
            '+' + std::filesystem::read_symlink("/proc/self/exe").string());
  for (uint32_t what = 0; what < 1024; ++what) {
    if (what == 'x' || what == 'w' || what == 'e') continue;
    EXPECT_EQ(answer(self, what), "-") << what;
  }
  EXPECT_EQ(answer(self, 0x80000000U | 'x'), "-");
  for (const uint32_t nobody : {0U, 0x7fffffffU, 0xffffffffU}) {
    EXPECT_EQ(answer(nobody, 'x'), "-") << nobody;
  }
}

TEST(HostileDaemonLookerTest, Malicious_AQuestionOfAnotherLengthEndsIt) {
  for (const size_t length : {0, 1, 4, 7, 9, 16, 4096}) {
    const Helper looker([](UniqueFd socket) { RunLooker(std::move(socket)); });
    std::string bytes(length, '\0');
    const Question question{static_cast<uint32_t>(::getpid()), 'x'};
    std::memcpy(bytes.data(), &question, std::min(length, sizeof question));
    ASSERT_EQ(::send(looker.socket.get(), bytes.data(), length, MSG_NOSIGNAL),
              static_cast<ssize_t>(length));
    char byte;
    EXPECT_EQ(::recv(looker.socket.get(), &byte, 1, 0), 0) << length;
  }
}

}  // namespace
}  // namespace tracefs
