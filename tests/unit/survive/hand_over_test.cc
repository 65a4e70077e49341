// One program takes the place of another: what each says and does, with this
// program as the other.
#include "tracefs/survive/hand_over.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/unit/survive/keeper_world.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::survive {
namespace {

// What the other program notes in the area: a number of a daemon of its own,
// plus this.
constexpr uint64_t kTookOver = 1000;

// --- The other program.

[[noreturn]] void BeDaemon(Area& area, const Inheritance& with,
                           uint32_t number) {
  area.Use();
  const Result<int> file = with.File("file");
  const char* const word = std::getenv("TRACEFS_TEST_WORD");
  const bool has_all =
      file.ok() && word != nullptr && std::string_view(word) == "passed on" &&
      ::fcntl(area.node(0).fd.load(), F_GETFD) >= 0 &&
      std::to_string(::getpriority(PRIO_PROCESS, 0)) == with.Text("usual");
  area.header().longest_gap_ns.store(has_all ? kTookOver + number : 1);
  area.header().served.store(1);
  if (number == 1) ::kill(::getpid(), SIGKILL);  // it may die as any
  area.header().ended.store(1);
  ::_exit(5);
}

[[noreturn]] void BeOther(const Inheritance& with) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  if (self.ends_with("/evil")) {
    std::ofstream(self + "-ran") << "it ran";
    ::_exit(66);
  }
  const std::string mode = with.Text("mode");
  const Result<int> file = with.File("area");
  if (!file.ok()) ::_exit(90);
  const auto area = Area::Open(UniqueFd(::dup(*file)), IsTrial(with));
  if (!area.ok()) Decline(with, nullptr, "the state is of another kind");
  if (IsTrial(with)) {
    if (mode == "refuse") Decline(with, area->get(), "it is of another kind");
    if (mode == "say nothing") ::_exit(0);
    if (mode == "wait") ::pause();
    Agree(with);
  }
  if (mode == "die") ::_exit(0);
  if (mode == "decline") Decline(with, area->get(), "it has no time");
  const KeeperOptions options = {
      .told = [](const std::string&) {}, .program = {}, .inheritance = &with};
  const Result<uint32_t> number = BecomeKeeper(**area, options);
  if (!number.ok()) ::_exit(91);
  BeDaemon(**area, with, *number);
}

// What the other program runs, and no more.
TEST(TheOtherProgram, DoesAsItWasTold) {
  const std::optional<Inheritance> with = Inheritance::OfProcess();
  if (with) BeOther(*with);
}

// --- The tests.

class HandOverTest : public KeeperWorld {
 protected:
  void SetUp() override {
    KeeperWorld::SetUp();
    ::setenv("TRACEFS_TEST_WORD", "passed on", 1);
    std::string name = testing::TempDir() + "overXXXXXX";
    top_ = ::mkdtemp(name.data());
    program_ = top_ + "/program";
    std::filesystem::copy_file("/proc/self/exe", program_);
    ASSERT_EQ(::chmod(program_.c_str(), 0755), 0);
    file_.Reset(::open((top_ + "/file").c_str(), O_RDWR | O_CREAT, 0600));
    struct stat st;
    ASSERT_EQ(::fstat(file_.get(), &st), 0);
    NodeRecord& node = area_->node(0);
    node.id.store(7);
    node.device = st.st_dev;
    node.inode = st.st_ino;
    node.fd.store(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 30));
    area_->header().nodes_used.store(1);
  }
  void TearDown() override {
    ::close(area_->node(0).fd.load());
    std::filesystem::remove_all(top_);
    ::unsetenv("TRACEFS_TEST_WORD");
    KeeperWorld::TearDown();
  }

  KeeperOptions Options(const std::string& mode,
                        const std::string& obstacle = "") {
    KeeperOptions options;
    options.program.path = program_;
    options.program.arguments = {"program", "--gtest_brief=1",
                                 "--gtest_filter=TheOtherProgram.*"};
    options.program.inheritance.Set("mode", mode);
    options.program.inheritance.Set(
        "usual", std::to_string(::getpriority(PRIO_PROCESS, 0)));
    EXPECT_TRUE(
        options.program.inheritance.SetFile("area", area_->file()).ok());
    EXPECT_TRUE(options.program.inheritance.SetFile("file", file_.get()).ok());
    options.program.obstacle = obstacle;
    return options;
  }

  // A daemon that asks twice, as nothing must have come of it, and says what
  // it was told; a later one ends in order.
  void Ask(
      const KeeperOptions& options,
      const std::function<tracefs::Status()>& drain = {},
      const std::function<void()>& go_on = [] {}) {
    Keep(
        [&](uint32_t number) {
          Serve();
          if (number != 0) End(6);
          std::string first;
          for (int i = 0; i < 2; ++i) {
            const tracefs::Status why = AskForUpgrade(
                *area_,
                [&] {
                  told_->number.fetch_add(100);
                  return drain ? drain() : tracefs::Status::Ok();
                },
                [&] {
                  told_->number.fetch_add(1);
                  go_on();
                });
            told_->Say(why.message());
            if (i == 0) first = why.message();
            if (why.ok() || first != why.message()) End(1);
          }
          if (!KeeperLives(*area_)) End(2);
          End(4);
        },
        options);
  }
  // Until that many spares have become the keeper, who hears what is asked
  // then.
  void AwaitKeepers(uint32_t count) const {
    for (int i = 0; i < 4000 && area_->header().keepers < count; ++i) {
      ::usleep(1000);
    }
  }
  std::string Said() const { return told_->text.data(); }

  std::string top_;
  std::string program_;
  UniqueFd file_;
};

TEST_F(HandOverTest, TheOtherProgramGoesOn) {
  Keep(
      [&](uint32_t) {
        Serve();
        static_cast<void>(AskForUpgrade(
            *area_, [] { return tracefs::Status::Ok(); },
            [&] { told_->number.fetch_add(1); }));
        End(1);
      },
      Options("take over"));
  // The same process, with the status of the other's daemons.
  EXPECT_EQ(WEXITSTATUS(Status()), 5);
  EXPECT_EQ(told_->number, 0u);
  EXPECT_EQ(area_->header().longest_gap_ns, kTookOver + 2);
  EXPECT_EQ(HandOverWord::Of(*area_).generation, 1u);
  EXPECT_EQ(HandOverWord::Of(*area_).phase, Phase::kNone);
  EXPECT_EQ(told_->daemons, 1u);
  AwaitEnd();
}

TEST_F(HandOverTest, OneThatWouldNotIsNotTried) {
  Ask(Options("refuse"));
  EXPECT_EQ(WEXITSTATUS(Status()), 4);
  EXPECT_EQ(Said(), "no upgrade: it is of another kind");
  EXPECT_EQ(told_->number, 0u) << "the daemon has served all the while";
}

TEST_F(HandOverTest, OneThatSaysNothingIsNotTried) {
  Ask(Options("say nothing"));
  EXPECT_EQ(WEXITSTATUS(Status()), 4);
  EXPECT_EQ(Said(),
            "no upgrade: the program ended without a word on whether it can "
            "take over");
  EXPECT_EQ(told_->number, 0u);
}

TEST_F(HandOverTest, WhatStandsInTheWayIsSaid) {
  Ask(Options("take over", "it cannot be upgraded"));
  EXPECT_EQ(WEXITSTATUS(Status()), 4);
  EXPECT_EQ(Said(), "no upgrade: it cannot be upgraded");
}

TEST_F(HandOverTest, AReasonMayBeOfAnyLength) {
  const std::string why(3000, 'w');
  Ask(Options("take over", why));
  EXPECT_EQ(WEXITSTATUS(Status()), 4);
  EXPECT_EQ(Said(), "no upgrade: " + why.substr(0, 1023 - 12));
}

TEST_F(HandOverTest, Malicious_AProgramThatOthersCanChangeIsNotRun) {
  const auto said = [&](const std::string& path) {
    KeeperOptions options = Options("take over");
    options.program.path = path;
    area_->header().ended.store(0);
    Ask(options);
    EXPECT_EQ(WEXITSTATUS(Status()), 4);
    return Said().substr(std::string("no upgrade: the program '").size() +
                         path.size());
  };
  EXPECT_EQ(said(top_ + "/none"), "': No such file or directory");
  EXPECT_EQ(said(top_), "' is no program");
  const std::string changed =
      "' can be changed by others; chown and chmod go-w it";
  for (const auto& [mode, want] : {std::pair(0644u, "' is no program"),
                                   {0775u, changed.c_str()},
                                   {0757u, changed.c_str()}}) {
    ASSERT_EQ(::chmod(program_.c_str(), mode), 0);
    EXPECT_EQ(said(program_), want) << mode;
  }
  if (::geteuid() == 0) {
    ASSERT_EQ(::chmod(program_.c_str(), 0755), 0);
    ASSERT_EQ(::chown(program_.c_str(), 1234, 1234), 0);
    EXPECT_EQ(said(program_), changed);
  }
  std::filesystem::remove(program_);
  std::ofstream(program_) << "no program";
  ASSERT_EQ(::chmod(program_.c_str(), 0700), 0);
  EXPECT_EQ(said(program_), "' cannot be run: Exec format error");
}

TEST_F(HandOverTest, ADaemonThatCannotBeDrainedGoesOn) {
  Ask(Options("take over"),
      [] { return tracefs::Status::Invalid("it is busy"); });
  EXPECT_EQ(WEXITSTATUS(Status()), 4);
  EXPECT_EQ(Said(), "it is busy");
  EXPECT_EQ(told_->number, 202u) << "drained twice, and served again";
}

TEST_F(HandOverTest, WhereItCannotBeRunAnyMoreTheKeeperStays) {
  const std::string away = program_ + "-away";
  Ask(
      Options("take over"),
      [&] {
        std::filesystem::rename(program_, away);
        return tracefs::Status::Ok();
      },
      [&] { std::filesystem::rename(away, program_); });
  EXPECT_EQ(WEXITSTATUS(Status()), 4);
  EXPECT_EQ(Said(), "no upgrade: the program '" + program_ +
                        "': No such file or directory");
  EXPECT_EQ(told_->number, 202u);
}

TEST_F(HandOverTest, WhereTheKernelDoesNotRunItTheSpareIsTheKeeper) {
  const std::string away = program_ + "-away";
  const int priority = ::getpriority(PRIO_PROCESS, 0);
  Ask(
      Options("take over"),
      [&] {
        std::filesystem::rename(program_, away);
        std::ofstream(program_) << "no program";
        ::chmod(program_.c_str(), 0700);
        return tracefs::Status::Ok();
      },
      [&, asked = 0u]() mutable {
        std::filesystem::rename(away, program_);
        AwaitKeepers(++asked);
        const auto keeper = static_cast<id_t>(area_->header().keeper.load());
        if (::getpriority(PRIO_PROCESS, keeper) != priority) {
          told_->number.fetch_add(10'000);
        }
      });
  // The daemon is no child of the one that was the spare.
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(Said(), "no upgrade: '" + program_ + "': Exec format error");
  EXPECT_EQ(told_->number, 202u);
  EXPECT_EQ(area_->header().keepers, 2u);
}

// It shares its descriptors with the keeper, and so has what that opens, too.
TEST_F(HandOverTest, Malicious_ADaemonCannotExchangeTheProgram) {
  constexpr int kTries = 15;
  const std::string evil = top_ + "/evil";
  std::filesystem::copy_file(program_, evil);
  ASSERT_EQ(::chmod(evil.c_str(), 0755), 0);
  Keep(
      [&](uint32_t number) {
        Serve();
        if (number != 0) End(6);
        std::atomic<bool> goes_on{true};
        const UniqueFd other(::open(evil.c_str(), O_PATH | O_CLOEXEC));
        std::thread exchanges([&] {
          std::array<char, 4096> target;
          while (goes_on) {
            for (int fd = 3; fd < 64; ++fd) {
              const std::string link = "/proc/self/fd/" + std::to_string(fd);
              const ssize_t n =
                  ::readlink(link.c_str(), target.data(), target.size());
              if (n > 0 &&
                  std::string_view(target.data(), static_cast<size_t>(n)) ==
                      program_) {
                ::dup2(other.get(), fd);
              }
            }
          }
        });
        for (int i = 0; i < kTries; ++i) {
          const std::string why =
              AskForUpgrade(
                  *area_, [] { return tracefs::Status::Ok(); }, [] {})
                  .message();
          told_->Say(why);
          AwaitKeepers(static_cast<uint32_t>(i) + 1);
        }
        goes_on = false;
        exchanges.join();
        End(4);
      },
      Options("decline"));
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(Said(), "no upgrade: it has no time");
  EXPECT_EQ(area_->header().keepers, static_cast<uint32_t>(kTries));
  EXPECT_FALSE(std::filesystem::exists(evil + "-ran"));
}

// The keeper's end makes its spare the keeper, of which the daemon is no child.
TEST_F(HandOverTest, Malicious_ADaemonCannotHaveAnotherProcessKilled) {
  const pid_t bystander = MakeBystander();
  Keep(
      [&](uint32_t) {
        Serve();
        AwaitKeepers(1);
        PutInPlaceOfDaemon(bystander);
        static_cast<void>(AskForUpgrade(
            *area_, [] { return tracefs::Status::Ok(); },
            [&] { told_->number.fetch_add(1); }));
        End(1);
      },
      Options("take over"));
  KillKeeper();
  Await([&] { return area_->header().ended == 1; });
  EXPECT_EQ(area_->header().longest_gap_ns, kTookOver + 2);
  EXPECT_EQ(HandOverWord::Of(*area_).generation, 1u);
  EXPECT_FALSE(IsAlive(told_->daemon)) << "it ends by itself";
  EXPECT_EQ(::waitpid(bystander, nullptr, WNOHANG), 0) << "it was killed";
}

TEST_F(HandOverTest, ADaemonThatIsNoChildAndDoesNotEndIsEnded) {
  Keep(
      [&](uint32_t) {
        Serve();
        AwaitKeepers(1);
        static_cast<void>(AskForUpgrade(
            *area_,
            [] {
              // From here on it hears nothing.
              std::thread([] {
                ::usleep(1000);
                ::kill(::getpid(), SIGSTOP);
              }).detach();
              return tracefs::Status::Ok();
            },
            [&] { told_->number.fetch_add(1); }));
        End(1);
      },
      Options("take over"));
  KillKeeper();
  Await([&] { return area_->header().ended == 1; });
  EXPECT_EQ(area_->header().longest_gap_ns, kTookOver + 2);
  Await([&] { return !IsAlive(told_->daemon); });
}

TEST_F(HandOverTest, OneThatDeclinesLeavesTheMountToTheSpare) {
  Keep(
      [&](uint32_t number) {
        Serve();
        if (number != 0) End(6);
        const tracefs::Status why = AskForUpgrade(
            *area_, [] { return tracefs::Status::Ok(); },
            [&] { told_->number.fetch_add(1); });
        told_->Say(why.message());
        for (int i = 0; area_->header().keepers == 0; ++i) {
          if (i == 4000) End(1);
          ::usleep(5000);
        }
        // The spare looks after it, and the next daemon is its child.
        ::kill(::getpid(), SIGKILL);
      },
      Options("decline"));
  // The first process stands in until all has ended, and ends as that did.
  EXPECT_EQ(WEXITSTATUS(Status()), 6);
  EXPECT_EQ(Said(), "no upgrade: it has no time");
  EXPECT_EQ(told_->number, 1u);
  EXPECT_EQ(told_->daemons, 2u);
  EXPECT_EQ(area_->header().keepers, 1u);
  EXPECT_EQ(HandOverWord::Of(*area_).generation, 0u);
}

TEST_F(HandOverTest, WhoStandsInPassesSignalsOn) {
  Keep(
      [&](uint32_t number) {
        Serve();
        sigset_t wanted;
        ::sigemptyset(&wanted);
        ::sigaddset(&wanted, SIGTERM);
        ::sigaddset(&wanted, SIGALRM);
        ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
        if (number != 0) End(6);
        static_cast<void>(AskForUpgrade(
            *area_, [] { return tracefs::Status::Ok(); }, [] {}));
        for (int i = 0; area_->header().keepers == 0; ++i) {
          if (i == 4000) End(1);
          ::usleep(5000);
        }
        told_->number.store(1);
        int got = 0;
        ::alarm(10);
        ::sigwait(&wanted, &got);
        End(got == SIGTERM ? 9 : 1);
      },
      Options("decline"));
  Await([&] { return told_->number == 1; });
  std::ifstream comm("/proc/" + std::to_string(keeper_) + "/comm");
  std::string name;
  std::getline(comm, name);
  EXPECT_EQ(name, "tracefs-standin");
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(keeper_)),
            ::getpriority(PRIO_PROCESS, 0));
  ::kill(keeper_, SIGTERM);
  EXPECT_EQ(Status() & 0x7f, 0);
  EXPECT_EQ(area_->header().ended, 1u);
}

TEST_F(HandOverTest, OneThatDiesLeavesTheMountToTheSpare) {
  Keep(
      [&](uint32_t) {
        Serve();
        const tracefs::Status why = AskForUpgrade(
            *area_, [] { return tracefs::Status::Ok(); },
            [&] { told_->number.fetch_add(1); });
        told_->Say(why.message());
        if (!KeeperLives(*area_)) End(1);
        told_->number.fetch_add(100);
        End(4);
      },
      Options("die"));
  Status();
  AwaitEnd();
  EXPECT_EQ(Said(), "no upgrade: the process that was to take over has ended");
  EXPECT_EQ(told_->number, 101u);
  EXPECT_EQ(area_->header().keepers, 1u);
}

TEST_F(HandOverTest, OnlyOneIsUnderWay) {
  for (const Phase phase : {Phase::kAsked, Phase::kReady, Phase::kDrained}) {
    area_->header().hand_over.store(5 << 8 | static_cast<uint64_t>(phase));
    const tracefs::Status why = AskForUpgrade(
        *area_, [] { return tracefs::Status::Ok(); }, [] {});
    EXPECT_EQ(why.error(), EBUSY);
    EXPECT_EQ(HandOverWord::Of(*area_).phase, phase);
  }
}

TEST_F(HandOverTest, TheWordIsChangedByWhoeverKnowsIt) {
  const uint64_t many = (uint64_t{1} << 56) - 2;
  for (const uint64_t generation : {uint64_t{0}, uint64_t{1}, many}) {
    const HandOverWord word = {.generation = generation,
                               .phase = Phase::kDrained};
    area_->header().hand_over.store(generation << 8 | 4);
    EXPECT_EQ(HandOverWord::Of(*area_).generation, generation);
    EXPECT_EQ(HandOverWord::Of(*area_).phase, Phase::kDrained);
    HandOverWord other = word;
    other.phase = Phase::kReady;
    EXPECT_FALSE(other.Change(*area_, Phase::kNone));
    other = word;
    other.generation ^= 1;
    EXPECT_FALSE(other.Change(*area_, Phase::kNone));
    EXPECT_TRUE(word.Change(*area_, Phase::kAsked, 1));
    EXPECT_EQ(HandOverWord::Of(*area_).generation, generation + 1);
    EXPECT_EQ(HandOverWord::Of(*area_).phase, Phase::kAsked);
    EXPECT_FALSE(word.Change(*area_, Phase::kNone));
  }
}

TEST_F(HandOverTest, ADaemonsDeathEndsWhatItAskedFor) {
  Keep(
      [&](uint32_t number) {
        Serve();
        if (number != 0) {
          End(HandOverWord::Of(*area_).phase == Phase::kNone ? 4 : 1);
        }
        static_cast<void>(AskForUpgrade(
            *area_,
            []() -> tracefs::Status {
              ::kill(::getpid(), SIGKILL);
              return {};
            },
            [] {}));
      },
      Options("take over"));
  EXPECT_EQ(WEXITSTATUS(Status()), 4);
}

TEST_F(HandOverTest, ADaemonsDeathEndsATrial) {
  Keep(
      [&](uint32_t number) {
        Serve();
        if (number != 0) {
          End(HandOverWord::Of(*area_).phase == Phase::kNone ? 4 : 1);
        }
        static_cast<void>(AskForUpgrade(
            *area_, [] { return tracefs::Status::Ok(); }, [] {}));
        End(1);
      },
      Options("wait"));
  const std::string name = std::filesystem::path(program_).filename();
  Await([&] { return ChildOf(keeper_, name) > 0; });
  const pid_t trial = ChildOf(keeper_, name);
  ASSERT_GT(trial, 0);
  ::kill(told_->daemon, SIGKILL);
  EXPECT_EQ(WEXITSTATUS(Status()), 4);
  EXPECT_FALSE(IsAlive(trial));
}

TEST_F(HandOverTest, AKeepersDeathEndsATrial) {
  Keep(
      [&](uint32_t) {
        Serve();
        const tracefs::Status why = AskForUpgrade(
            *area_, [] { return tracefs::Status::Ok(); }, [] {});
        told_->Say(why.message());
        End(4);
      },
      Options("wait"));
  const std::string name = std::filesystem::path(program_).filename();
  Await([&] { return ChildOf(keeper_, name) > 0; });
  const pid_t trial = ChildOf(keeper_, name);
  ASSERT_GT(trial, 0);
  KillKeeper();
  Await([&] { return !IsAlive(trial); });
  Await([&] { return area_->header().ended == 1; });
  EXPECT_EQ(Said(), "no upgrade: the process that was to take over has ended");
  AwaitEnd();
}

}  // namespace
}  // namespace tracefs::survive
