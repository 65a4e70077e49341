// What the doctor says of machines made up for it, and what it changes there
// (doctor.h).
#include "tracefs/mount/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/mount/scratch_dir.h"
#include "tracefs/daemon/capabilities.h"

namespace tracefs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using State = Finding::State;

constexpr char kSwitch[] = "/sys/module/fuse/parameters/enable_uring";

// A machine that has everything; tests take away.
class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    machine_.root = scratch_.path();
    machine_.kernel_release = "6.18.0";
    machine_.capabilities = ~uint64_t{0};
    machine_.is_root = true;
    machine_.libfuse_version = 318;
    machine_.libfuse_package = "3.18.3";
    machine_.libfuse_has_uring = true;
    machine_.fd_limit = 1 << 20;
    machine_.nats_library = "libnats 3.4.1";
    machine_.kafka_library = "librdkafka 2.0.2";
    Put(kSwitch, "Y\n");
    Put("/sys/module/fuse/initstate", "live\n");
    Put("/proc/sys/fs/fuse/max_pages_limit", "256\n");
    Put("/dev/fuse", "");
    ::chmod((scratch_.path() + "/dev/fuse").c_str(), 0666);
    Put("/usr/bin/fusermount3", "");
    ::chmod((scratch_.path() + "/usr/bin/fusermount3").c_str(), 04755);
    Put("/etc/fuse.conf", "# comment\nuser_allow_other\n");
    Put("/proc/sys/kernel/seccomp/actions_avail", "errno user_notif allow\n");
    for (const char* name : {"mnt", "net", "ipc", "uts"}) {
      Put(std::string("/proc/self/ns/") + name, "");
    }
    Put("/sys/kernel/tracing/events/fuse/enable", "0\n");
    Put("/sbin/mount.fuse.tracefs", "");
    Put("/sbin/umount.fuse.tracefs", "");
    Put("/run/systemd/system/tracefs@.service", "");
    Put("/run/systemd/journal/socket", "");
  }

  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = scratch_.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  void Remove(const std::string& path) {
    std::filesystem::remove_all(scratch_.path() + path);
  }
  std::string Get(const std::string& path) {
    std::ifstream in(scratch_.path() + path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  Finding Of(const std::string& subject) {
    for (Finding& f : Examine(machine_, "")) {
      if (f.subject == subject) return f;
    }
    ADD_FAILURE() << "nothing about " << subject;
    return {};
  }
  std::string FixAll() {
    std::ostringstream out;
    const Status status = Fix(machine_, Examine(machine_, ""), out);
    EXPECT_TRUE(status.ok()) << status.message();
    return out.str();
  }

  ScratchDir scratch_;
  Machine machine_;
};

TEST_F(DoctorTest, NothingIsWrongWithAGoodMachine) {
  for (const Finding& f : Examine(machine_, "")) {
    // These two look at the machine of the test, too.
    if (f.subject == "process events" || f.subject == "sandbox" ||
        f.subject == "ordinary users") {
      continue;
    }
    EXPECT_EQ(f.state, State::kOk) << f.subject << ": " << f.found;
  }
}

TEST_F(DoctorTest, HowItIsInstalledIsLookedAt) {
  EXPECT_THAT(Of("log").found, HasSubstr("journal"));
  Remove("/run/systemd/journal");
  EXPECT_EQ(Of("log").state, State::kLimited);
  Put("/dev/log", "");
  EXPECT_THAT(Of("log").found, HasSubstr("/dev/log"));
  EXPECT_THAT(Of("output to NATS").found, HasSubstr("libnats 3.4.1"));
  machine_.nats_library.clear();
  EXPECT_EQ(Of("output to NATS").state, State::kLimited);
  EXPECT_THAT(Of("output to Kafka").found, HasSubstr("librdkafka 2.0.2"));
  machine_.kafka_library.clear();
  EXPECT_EQ(Of("output to Kafka").state, State::kLimited);
  EXPECT_THAT(Of("output to Kafka").advice, HasSubstr("librdkafka-dev"));
  Remove("/sbin/umount.fuse.tracefs");
  EXPECT_EQ(Of("mount helpers").found, "no umount.fuse.tracefs in /sbin");
  Remove("/run/systemd/system/tracefs@.service");
  EXPECT_EQ(Of("unit").state, State::kLimited);
  // Nobody needs a unit where systemd does not run.
  Remove("/run/systemd/system");
  EXPECT_EQ(Of("unit").state, State::kOk);
}

TEST_F(DoctorTest, WhateverIsWrongComesWithConsequenceAndAdvice) {
  Remove("/");
  machine_ = Machine{};
  machine_.root = scratch_.path();
  machine_.kernel_release = "5.4.0";
  for (const Finding& f : Examine(machine_, scratch_.path() + "/none")) {
    EXPECT_FALSE(f.subject.empty());
    EXPECT_FALSE(f.found.empty()) << f.subject;
    if (f.state == State::kOk) continue;
    EXPECT_FALSE(f.consequence.empty()) << f.subject;
    EXPECT_FALSE(f.advice.empty()) << f.subject;
  }
}

TEST_F(DoctorTest, NoDeviceNoMount) {
  Remove("/dev/fuse");
  EXPECT_EQ(Of("/dev/fuse").state, State::kMissing);
  std::ostringstream out;
  EXPECT_FALSE(Report(Examine(machine_, ""), out));
  EXPECT_THAT(out.str(), HasSubstr("missing  /dev/fuse: "));
}

TEST_F(DoctorTest, KernelsOfferMoreAndMore) {
  machine_.kernel_release = "5.4.0";
  EXPECT_EQ(Of("kernel").state, State::kMissing);
  machine_.kernel_release = "6.1.0-amd64";
  EXPECT_EQ(Of("kernel").state, State::kLimited);
  EXPECT_EQ(Of("FUSE passthrough").state, State::kLimited);
  EXPECT_EQ(Of("survival").state, State::kLimited);
  machine_.kernel_release = "6.9";
  EXPECT_EQ(Of("FUSE passthrough").state, State::kOk);
  EXPECT_EQ(Of("survival").state, State::kOk);
  machine_.kernel_release = "6.18.44-amd64";
  EXPECT_EQ(Of("kernel").state, State::kOk);
}

// What a kernel lacks is told one by one, and from which on all holds that is
// promised.
TEST_F(DoctorTest, WhatIsPromisedIsToldByTheKernelItTakes) {
  const std::pair<const char*, const char*> lacking[] = {
      {"6.0.12", "O_TMPFILE"},     {"6.5.0", "shared maps"},
      {"6.6.1", "no Landlock"},    {"6.7.9", "watchdog"},
      {"6.8.0-31", "passthrough"}, {"6.11", "F_SETOWN"},
  };
  for (const auto& [release, what] : lacking) {
    machine_.kernel_release = release;
    const Finding f = Of("kernel");
    EXPECT_EQ(f.state, State::kLimited) << release;
    EXPECT_THAT(f.consequence, HasSubstr(what)) << release;
    EXPECT_THAT(f.advice, HasSubstr("use Linux 6.12 or newer")) << release;
  }
  for (const char* release : {"6.12.0", "6.15"}) {
    machine_.kernel_release = release;
    const Finding f = Of("kernel");
    EXPECT_THAT(f.advice, HasSubstr("nothing that is promised is missing"));
    for (const auto& [before, what] : lacking) {
      EXPECT_THAT(f.consequence, Not(HasSubstr(what))) << release;
    }
  }
}

TEST_F(DoctorTest, LibfuseBefore3183LosesSetUserId) {
  machine_.libfuse_package = "3.18.2";
  EXPECT_EQ(Of("libfuse").state, State::kLimited);
  machine_.libfuse_version = 314;
  machine_.libfuse_package = "3.14.0";
  EXPECT_EQ(Of("libfuse").state, State::kLimited);
  EXPECT_EQ(Of("FUSE passthrough").state, State::kLimited);
}

TEST_F(DoctorTest, MissingCapabilitiesAreNamed) {
  machine_.capabilities &= ~CapabilityBit(CAP_MKNOD);
  EXPECT_THAT(Of("privilege").found, HasSubstr("mknod"));
  machine_.capabilities = 0;
  machine_.is_root = false;
  EXPECT_EQ(Of("privilege").found, "ordinary user");
}

TEST_F(DoctorTest, AKernelWithoutTheSwitchHasNoUring) {
  Remove(kSwitch);
  const Finding f = Of("FUSE over io_uring");
  EXPECT_EQ(f.state, State::kLimited);
  EXPECT_TRUE(f.remedies.empty());
}

TEST_F(DoctorTest, TheSwitchOfAModuleIsFixedForNowAndForTheNextBoot) {
  Put(kSwitch, "N\n");
  EXPECT_EQ(Of("FUSE over io_uring").state, State::kLimited);
  const std::string said = FixAll();
  EXPECT_EQ(Get(kSwitch).substr(0, 1), "Y");
  EXPECT_THAT(Get("/etc/modprobe.d/tracefs.conf"),
              HasSubstr("\noptions fuse enable_uring=1\n"));
  EXPECT_THAT(said, HasSubstr(kSwitch));
  EXPECT_THAT(said, HasSubstr("/etc/modprobe.d/tracefs.conf"));
}

TEST_F(DoctorTest, TheSwitchOfABuiltInFuseIsSetAtEachBoot) {
  // modprobe's options reach modules only.
  Put(kSwitch, "N\n");
  Remove("/sys/module/fuse/initstate");
  FixAll();
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() + "/etc/modprobe.d"));
  EXPECT_THAT(Get("/etc/tmpfiles.d/tracefs.conf"),
              HasSubstr(std::string("\nw ") + kSwitch + " - - - - Y\n"));
}

TEST_F(DoctorTest, WhatSomebodySwitchedOffOnPurposeIsNotFixed) {
  Put("/proc/sys/kernel/io_uring_disabled", "2\n");
  Put("/etc/fuse.conf", "#user_allow_other\n");
  ::chmod((scratch_.path() + "/dev/fuse").c_str(), 0600);
  EXPECT_EQ(Of("FUSE over io_uring").state, State::kLimited);
  EXPECT_THAT(FixAll(), HasSubstr("nothing that --fix could change"));
}

TEST_F(DoctorTest, FixingTwiceChangesNothingMore) {
  Put(kSwitch, "N\n");
  machine_.fd_limit = 1024;
  // The same findings twice, as where the first time did not help at once.
  const std::vector<Finding> findings = Examine(machine_, "");
  std::ostringstream first, second;
  ASSERT_TRUE(Fix(machine_, findings, first).ok());
  const std::string modprobe = Get("/etc/modprobe.d/tracefs.conf");
  const std::string limits = Get("/etc/security/limits.d/tracefs.conf");
  ASSERT_TRUE(Fix(machine_, findings, second).ok());
  EXPECT_EQ(Get("/etc/modprobe.d/tracefs.conf"), modprobe);
  EXPECT_EQ(Get("/etc/security/limits.d/tracefs.conf"), limits);
  EXPECT_THAT(first.str(), Not(HasSubstr("unchanged")));
  EXPECT_THAT(second.str(), Not(HasSubstr("wrote")));
  EXPECT_THAT(second.str(), HasSubstr("unchanged  /etc/modprobe.d"));
}

TEST_F(DoctorTest, LinesOfOthersStay) {
  Put(kSwitch, "N\n");
  Put("/etc/modprobe.d/tracefs.conf", "options fuse max_user_bgreq=9");
  FixAll();
  EXPECT_EQ(Get("/etc/modprobe.d/tracefs.conf"),
            "options fuse max_user_bgreq=9\noptions fuse enable_uring=1\n");
}

TEST_F(DoctorTest, Malicious_ALinkInPlaceOfTheNewFileIsNotFollowed) {
  Put(kSwitch, "N\n");
  Put("/victim", "mine\n");
  std::filesystem::create_directories(scratch_.path() + "/etc/modprobe.d");
  std::filesystem::create_symlink(
      scratch_.path() + "/victim",
      scratch_.path() + "/etc/modprobe.d/tracefs.conf.new");
  FixAll();
  EXPECT_EQ(Get("/victim"), "mine\n");
  EXPECT_THAT(Get("/etc/modprobe.d/tracefs.conf"), HasSubstr("enable_uring=1"));
}

TEST_F(DoctorTest, SmallRequestsAreMadeLarger) {
  Put("/proc/sys/fs/fuse/max_pages_limit", "32\n");
  EXPECT_EQ(Of("request size").state, State::kLimited);
  FixAll();
  EXPECT_EQ(Of("request size").state, State::kOk);
  EXPECT_THAT(Get("/etc/sysctl.d/90-tracefs.conf"),
              HasSubstr("fs.fuse.max_pages_limit = 256"));
}

TEST_F(DoctorTest, AFixThatFailsNamesTheFile) {
  Put("/proc/sys/fs/fuse/max_pages_limit", "32\n");
  const std::vector<Finding> findings = Examine(machine_, "");
  Remove("/proc/sys/fs/fuse/max_pages_limit");
  std::filesystem::create_directories(scratch_.path() +
                                      "/proc/sys/fs/fuse/max_pages_limit");
  std::ostringstream out;
  const Status status = Fix(machine_, findings, out);
  EXPECT_EQ(status.code(), StatusCode::kSystem);
  EXPECT_THAT(status.message(), HasSubstr("max_pages_limit"));
}

TEST_F(DoctorTest, ASourceIsLookedAt) {
  bool seen = false;
  for (const Finding& f : Examine(machine_, scratch_.Folder("source"))) {
    seen |= f.subject == "source: file system";
  }
  EXPECT_TRUE(seen);
  EXPECT_EQ(Examine(machine_, scratch_.Path("none")).back().state,
            State::kMissing);
}

TEST_F(DoctorTest, NoLineIsLongerThanATerminal) {
  machine_ = Machine{};
  machine_.root = scratch_.Path("nothing");
  std::ostringstream out;
  Report(Examine(machine_, ""), out);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    // The first line of a finding holds paths and is as long as they are.
    if (line.rfind("        ", 0) != 0) continue;
    EXPECT_LE(line.size(), 79u) << line;
  }
}

}  // namespace
}  // namespace tracefs
