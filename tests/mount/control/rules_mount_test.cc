// Rules of a real mount: each rule of config/samples/ids.conf fires on an
// attack and none on honest work; what alarms do; which rules are refused.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "tests/mount/control/live_mount.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::testing {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

class RulesMountTest : public LiveMountTest {
 protected:
  // The sample, with its traces in the scratch directory.
  std::string IdsConfig() const {
    std::string text = Read("config/samples/ids.conf");
    const std::string from = "/var/tmp/";
    for (size_t at = 0; (at = text.find(from)) != std::string::npos;) {
      text.replace(at, from.size(), Path(""));
    }
    return text;
  }
  // Alarms of each rule so far, by title.
  std::map<std::string, int> Alarms() const {
    std::map<std::string, int> alarms;
    const json answer = Ask("rules");
    for (const json& rule : answer["rules"]) {
      alarms[rule["title"]] = rule["alarms"];
    }
    return alarms;
  }
  json RuleOf(const std::string& title) const {
    const json answer = Ask("rules");
    for (const json& rule : answer["rules"]) {
      if (rule["title"] == title) return rule;
    }
    return nullptr;
  }
  // Waits until the rule has fired `count` times.
  bool WaitForAlarms(const std::string& title, int count) const {
    return WaitUntil([&] { return Alarms()[title] >= count; });
  }
  static bool WaitUntil(const std::function<bool()>& condition) {
    for (const auto end = Clock::now() + std::chrono::seconds(120);
         Clock::now() < end;) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  // Runs a command of the shell in the mount.
  void Shell(const std::string& command) const {
    const Outcome outcome = RunCommand({"/bin/sh", "-ec", command},
                                       {.uid = 0, .directory = In("")});
    EXPECT_EQ(outcome.status, 0) << command << '\n'
                                 << outcome.out << outcome.err;
  }
  // Some operation some hundred times a second until that rule fires.
  template <typename Do>
  void Keep(const std::string& title, Do do_it) const {
    std::atomic<bool> done{false};
    std::thread attack([&] {
      for (int i = 0; !done; ++i) {
        do_it(i);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
    static_cast<void>(WaitForAlarms(title, 1));
    done = true;
    attack.join();
  }
  // All alarms are of that rule alone.
  void ExpectOnly(const std::string& title) const {
    EXPECT_TRUE(WaitForAlarms(title, 1)) << title << Ask("rules").dump(1);
    for (const auto& [rule, alarms] : Alarms()) {
      EXPECT_EQ(alarms, rule == title ? 1 : 0) << rule;
    }
    EXPECT_EQ(RuleOf(title)["state"], "alarm");
  }
  // The alarms of a complete trace.
  std::vector<json> AlarmsIn(const std::string& trace) const {
    std::vector<json> alarms;
    for (const json& line : Events(trace)) {
      if (line.contains("alarm")) alarms.push_back(line);
    }
    return alarms;
  }
  std::string Dumped(const std::string& trace,
                     const std::string& format) const {
    const Outcome outcome =
        RunCommand({"tracefs-dump", "--format", format, Path(trace)});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }

  // What Prometheus would be told.
  std::string Metrics(const std::string& socket_path) const {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                        sizeof address),
              0)
        << std::strerror(errno);
    constexpr std::string_view kAsk =
        "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(::write(fd.get(), kAsk.data(), kAsk.size()),
              static_cast<ssize_t>(kAsk.size()));
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(fd.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }

  static constexpr char kRename[] = "mass rename";
  static constexpr char kOverwrite[] = "mass overwrite";
  static constexpr char kCanary[] = "a canary was touched";
  static constexpr char kSetId[] = "a set-uid or set-gid bit was set";
  static constexpr char kLog[] = "a log was cut or overwritten";
  static constexpr char kSensitive[] =
      "a sensitive file was opened by an unusual program";
};

TEST_F(RulesMountTest, Ids_MassRename) {
  Mount(IdsConfig());
  Write(In("a"), "x");
  Keep(kRename, [&](int i) {
    const std::string from = i % 2 == 0 ? In("a") : In("a.locked");
    const std::string to = i % 2 == 0 ? In("a.locked") : In("a");
    ASSERT_EQ(::rename(from.c_str(), to.c_str()), 0);
  });
  ExpectOnly(kRename);
  const json fired = RuleOf(kRename)["last"][0];
  EXPECT_EQ(fired["op"], "rename");
  EXPECT_EQ(fired["pid"], ::getpid());
  EXPECT_EQ(fired["key"], "tree " + std::to_string(::getpid()));
  EXPECT_EQ(fired["actions"][0]["action"], "snapshot");
  EXPECT_EQ(fired["actions"][0]["outcome"], "done");
  EXPECT_EQ(fired["actions"][1]["action"], "raise");
  EXPECT_EQ(fired["actions"][1]["outcome"], "done");
  // The detailed tracer has been armed.
  EXPECT_EQ(Ask("rules")["raised"][0]["tracer"], 2);
  ASSERT_EQ(::mkdir(In("afterwards").c_str(), 0755), 0);
  Unmount();
  const std::vector<json> alarms = AlarmsIn("tracefs-ids.trace");
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0]["alarm"], kRename);
  EXPECT_EQ(alarms[0]["rule"], 1);
  // One snapshot has what led up to the alarm, the other what came after.
  size_t renames = 0;
  for (const json& event : Events("tracefs-ids-detail.000001")) {
    renames += event["op"] == "rename";
  }
  EXPECT_GT(renames, 80u);
  bool looked = false;
  for (const json& event : Events("tracefs-ids-detail.000002")) {
    looked |= event["op"] == "lookup" && event["path"] == "/afterwards";
  }
  EXPECT_TRUE(looked);
}

TEST_F(RulesMountTest, Ids_MassOverwriteInPlaceAndByCutting) {
  Mount(IdsConfig());
  Write(In("in-place"), "some text");
  Write(In("cut"), "some text");
  Keep(kOverwrite, [&](int i) {
    const UniqueFd fd(i % 2 == 0 ? ::open(In("in-place").c_str(), O_RDWR)
                                 : ::open(In("cut").c_str(),
                                          O_WRONLY | O_TRUNC | O_CREAT, 0600));
    ASSERT_EQ(::write(fd.get(), "encrypted", 9), 9);
  });
  ExpectOnly(kOverwrite);
}

TEST_F(RulesMountTest, Ids_CanaryTouched) {
  Write(Below(".canary-accounts.xls"), "bait");
  Mount(IdsConfig(), {"--metrics", "unix:" + Path("metrics.sock")});
  Shell("ls -la . > /dev/null");  // listing is harmless
  EXPECT_EQ(Alarms()[kCanary], 0);
  Shell("cat .canary-accounts.xls > /dev/null");
  ExpectOnly(kCanary);
  const json fired = RuleOf(kCanary)["last"][0];
  EXPECT_EQ(fired["comm"], "cat");
  EXPECT_EQ(fired["path"], "/.canary-accounts.xls");
  const std::string metrics = Metrics(Path("metrics.sock"));
  EXPECT_NE(metrics.find("tracefs_rule_alarms_total{tracer=\"1\",rule=\"3\","
                         "title=\"a canary was touched\"} 1\n"),
            std::string::npos)
      << metrics;
  // Nobody sees what feeds the rules as a tracer.
  EXPECT_EQ(metrics.find("tracer_name=\"rules\""), std::string::npos);
}

TEST_F(RulesMountTest, Ids_SetUidBitSet) {
  Write(Below("tool"), "#!");
  Mount(IdsConfig());
  Shell("chmod 755 tool");
  Shell("chmod u+s tool");
  ExpectOnly(kSetId);
  EXPECT_EQ(RuleOf(kSetId)["last"][0]["path"], "/tool");
}

TEST_F(RulesMountTest, Ids_LogTruncated) {
  std::filesystem::create_directories(Below("var/log"));
  Write(Below("var/log/auth.log"), "who was here\n");
  Mount(IdsConfig());
  Shell("echo more >> var/log/auth.log");
  EXPECT_EQ(Alarms()[kLog], 0);
  Shell("truncate -s 0 var/log/auth.log");
  ExpectOnly(kLog);
  EXPECT_EQ(RuleOf(kLog)["last"][0]["path"], "/var/log/auth.log");
}

TEST_F(RulesMountTest, Ids_LogTruncatedByOpening) {
  std::filesystem::create_directories(Below("log"));
  Write(Below("log/messages"), "who was here\n");
  Mount(IdsConfig());
  Shell(": > log/messages");
  ExpectOnly(kLog);
}

TEST_F(RulesMountTest, Ids_SensitiveFileReadByAnUnusualProgram) {
  std::filesystem::create_directories(Below("etc"));
  Write(Below("etc/shadow"), "root:x\n");
  // A usual program, as far as its name goes.
  std::filesystem::copy("/bin/cat", Path("sshd"));
  Mount(IdsConfig());
  Shell("../sshd etc/shadow > /dev/null");
  EXPECT_EQ(Alarms()[kSensitive], 0);
  Shell("cat etc/shadow > /dev/null");
  ExpectOnly(kSensitive);
  EXPECT_EQ(RuleOf(kSensitive)["last"][0]["key"], "cname cat");
}

TEST_F(RulesMountTest, Ids_HonestWorkRaisesNoAlarm) {
  Mount(IdsConfig());
  const char* size = ::getenv("TRACEFS_HONEST_FILES");
  const std::string files = size != nullptr ? size : "40";
  // A project of many files, built twice and cleaned.
  Shell(
      "mkdir build && cd build && for i in $(seq " + files +
      "); do printf 'int f%d(void) { return %d; }\\n' $i $i > f$i.c; "
      "echo \"f$i.o: f$i.c\" >> rules.mk; echo \"objects += f$i.o\" >> "
      "rules.mk; done; { echo 'include rules.mk'; echo 'lib.a: $(objects)'; "
      "printf '\\tar rcs $@ $^\\n'; echo 'clean:'; printf '\\trm -f $(objects) "
      "lib.a\\n'; } > Makefile; make -j2 lib.a; touch *.c; make -j2 lib.a; "
      "make clean; make -j2 lib.a");
  // Mail.
  Shell("mkdir mail && printf 'set location " + In("mail") +
        "\\nset number 500\\nset transactions 2000\\nrun\\nquit\\n' > "
        "postmark.conf && postmark postmark.conf > /dev/null");
  // Version control: many commits, many loose objects, then one pack.
  Shell(
      "mkdir repo && cd repo && git init -q . && git config user.name x && "
      "git config user.email x@x && for i in $(seq 20); do for j in $(seq "
      "10); do echo $i.$j > f$i.$j; done; git add . && git commit -qm $i; "
      "done; "
      "git gc -q --prune=now && git fsck --no-progress");
  // What has not been looked at yet is looked at in a moment.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const json rules = Ask("rules");
  ASSERT_EQ(rules["rules"].size(), 6u);
  int counted = 0;
  for (const json& rule : rules["rules"]) {
    EXPECT_EQ(rule["alarms"], 0) << rule.dump(1);
    EXPECT_EQ(rule["missed"], 0);
    counted += rule["matched"].get<int>();
  }
  EXPECT_GT(counted, 0);  // they were awake
  EXPECT_TRUE(rules["raised"].empty());
}

// --- What is counted.

// A filter as a rule, and as a tracer that records only what the rule counts.
TEST_F(RulesMountTest, ARuleCountsWhatATracerWithItsFilterRecords) {
  Write(Below("secret"), "x");
  ASSERT_EQ(::link(Below("secret").c_str(), Below("alias").c_str()), 0);
  Write(Below("theirs"), "x");
  ASSERT_EQ(::chown(Below("theirs").c_str(), 1234, 1234), 0);
  const std::vector<std::string> filters = {
      "op = open AND cexe ~ **/cat",
      "op = open AND cargs ~ \"*ecret*\"",
      "op = open AND NOT ctty = none",
      "op = open AND ccgroup ~ *",
      "op = open AND descendant of sh",
      "op = open AND NOT descendant of no-such",
      "op = open AND NOT cexe ~ **/cat",
      "op = open AND name = secret",
      "op = open AND NOT name = secret",
      "op = open AND path = /secret",
      "op = read AND fuid = 1234",
      "op = read AND NOT fuid = 0",
  };
  std::string rules;
  std::string tracers;
  for (size_t i = 0; i < filters.size(); ++i) {
    // The first one is met before anything that costs something was asked for.
    rules += "when rate(read) > 99999/s then { }; when seen(" + filters[i] +
             " by pid) then { alarm \"" + std::to_string(i) + "\" };\n";
    tracers += Tracer(filters[i], std::to_string(i) + ".trace") + "\n";
  }
  Mount("{ { op = rmdir } { " + rules + " } { file = \"" + Path("watch.trace") +
        "\" } }\n" + tracers);
  Shell(
      "cat secret theirs alias > /dev/null; cat alias > /dev/null; head -c 1 "
      "theirs > /dev/null; true");
  // Both have their last operation by then.
  ASSERT_TRUE(WaitForAlarms("9", 1));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::map<std::string, size_t> counted;
  const json answer = Ask("rules");
  for (const json& rule : answer["rules"]) {
    counted[rule["title"]] = rule["matched"];
  }
  Unmount();
  for (size_t i = 0; i < filters.size(); ++i) {
    EXPECT_EQ(counted[std::to_string(i)],
              Events(std::to_string(i) + ".trace").size())
        << filters[i];
  }
  EXPECT_EQ(counted["7"], 3u);  // a link is the file
  EXPECT_EQ(counted["6"], 1u);
}

TEST_F(RulesMountTest, ARuleCountsBySystemCallsThoughNoTracerRecordsThem) {
  Write(Below("f"), "x");
  Mount(Tracer("op = rmdir", "first.trace"));
  const Outcome added = Ctl(
      {"add", Config("calls.conf",
                     "{ { op = rmdir } { when rate(read) > 99999/s then { }; "
                     "when seen(op = open AND syscall = openat) then { } } { "
                     "file = \"" +
                         Path("calls.trace") + "\" } }")});
  if (added.err.find("system calls") != std::string::npos) {
    GTEST_SKIP() << added.err;  // a machine without tracepoints
  }
  ASSERT_EQ(added.status, 0) << added.err;
  Shell("cat f > /dev/null");
  EXPECT_TRUE(
      WaitUntil([&] { return Ask("rules")["rules"][1]["matched"] == 1; }));
}

// --- What alarms do.

TEST_F(RulesMountTest, RaisedTracerHasTheOtherFilterForTheTime) {
  Mount(
      "watch { { op = rmdir } { when seen(unlink) then { raise detail to \"op "
      "= mkdir\" for 2s } } { file = \"" +
      Path("watch.trace") + "\" } }\ndetail " +
      Tracer("op = rename", "detail.trace"));
  Write(In("x"), "");
  ASSERT_EQ(::mkdir(In("early").c_str(), 0755), 0);
  ASSERT_EQ(::unlink(In("x").c_str()), 0);
  ASSERT_TRUE(WaitUntil([&] { return Ask("rules")["raised"].size() == 1; }));
  ASSERT_EQ(::mkdir(In("in-time").c_str(), 0755), 0);
  ASSERT_TRUE(WaitUntil([&] { return Ask("rules")["raised"].empty(); }));
  ASSERT_EQ(::mkdir(In("late").c_str(), 0755), 0);
  ASSERT_EQ(::rename(In("late").c_str(), In("later").c_str()), 0);
  EXPECT_EQ(TracerIn(Ask("list"), 2)["filter"], "op = rename");
  Unmount();
  const std::vector<json> events = Events("detail.trace");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["path"], "/in-time");
  EXPECT_EQ(events[1]["op"], "rename");
}

TEST_F(RulesMountTest, StoppedTracerRunsWhileItIsRaisedOrOnceItIsStarted) {
  Mount(
      "{ { op = rmdir } { when seen(unlink) then { raise 2 for 1s }; when "
      "seen(symlink) then { start 2 }; when seen(link) then { stop 2 } } { "
      "file = \"" +
      Path("watch.trace") + "\" } }\n" + Tracer("op = mkdir", "two.trace"));
  ASSERT_EQ(Ctl({"stop", "2"}).status, 0);
  const auto state = [&] { return TracerIn(Ask("list"), 2)["state"]; };
  Write(In("x"), "");
  Write(In("y"), "");
  ASSERT_EQ(::unlink(In("x").c_str()), 0);
  EXPECT_TRUE(WaitUntil([&] { return state() == "running"; }));
  EXPECT_TRUE(WaitUntil([&] { return state() == "stopped"; }));
  ASSERT_EQ(::symlink("x", In("z").c_str()), 0);
  EXPECT_TRUE(WaitUntil([&] { return state() == "running"; }));
  ASSERT_EQ(::link(In("y").c_str(), In("yy").c_str()), 0);
  EXPECT_TRUE(WaitUntil([&] { return state() == "stopped"; }));
}

TEST_F(RulesMountTest, StoppedTracerStopsAgainIfItGetsAFilterWhileItIsRaised) {
  Mount(
      "{ { op = rmdir } { when seen(unlink) then { raise 2 for 1h } } { file = "
      "\"" +
      Path("watch.trace") + "\" } }\n" + Tracer("op = rename", "two.trace"));
  ASSERT_EQ(Ctl({"stop", "2"}).status, 0);
  const auto state = [&] { return TracerIn(Ask("list"), 2)["state"]; };
  Write(In("x"), "");
  ASSERT_EQ(::unlink(In("x").c_str()), 0);
  ASSERT_TRUE(WaitUntil([&] { return state() == "running"; }));
  ASSERT_EQ(Ctl({"set-filter", "2", "op = mkdir"}).status, 0);
  EXPECT_EQ(state(), "stopped");
  EXPECT_TRUE(Ask("rules")["raised"].empty());
  ASSERT_EQ(::mkdir(In("unseen").c_str(), 0755), 0);
  ASSERT_EQ(Ctl({"start", "2"}).status, 0);
  ASSERT_EQ(::mkdir(In("seen").c_str(), 0755), 0);
  Unmount();
  const std::vector<json> events = Events("two.trace");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["path"], "/seen");
}

TEST_F(RulesMountTest, RulesRestAndGoWithTheirTracer) {
  Mount(Tracer("op = rmdir", "first.trace"));
  const json before = Ask("explain")["choices"];
  ASSERT_EQ(
      Ctl({"add", Config("rules.conf",
                         "{ { op = rmdir } { when seen(op = lookup AND "
                         "name = x) then { raise 1 for 1h } } { file = \"" +
                             Path("rules.trace") + "\" } }")})
          .status,
      0);
  // What a rule must see, the kernel may not keep; and nothing else.
  const json names = ChoiceIn(Ask("explain"), "names");
  EXPECT_EQ(names["causes"][0]["tracer"], 2);
  EXPECT_EQ(names["causes"][0]["name"], "rules");
  ASSERT_EQ(Ctl({"stop", "2"}).status, 0);
  EXPECT_EQ(Ask("explain")["choices"], before);
  EXPECT_EQ(Ask("rules")["rules"][0]["state"], "stopped");
  ASSERT_EQ(Ctl({"start", "2"}).status, 0);
  struct stat st;
  ASSERT_NE(::stat(In("x").c_str(), &st), 0);
  ASSERT_TRUE(WaitUntil([&] { return Ask("rules")["raised"].size() == 1; }));
  // Numbers count the tracers of its own file, the first of which is now 2.
  EXPECT_EQ(Ask("rules")["raised"][0]["tracer"], 2);
  ASSERT_EQ(Ctl({"remove", "2"}).status, 0);
  EXPECT_TRUE(Ask("rules")["rules"].empty());
  EXPECT_TRUE(Ask("rules")["raised"].empty());
  EXPECT_EQ(Ask("explain")["choices"], before);
  EXPECT_EQ(Ctl({"remove", std::to_string((1u << 29) + 1)}).status, 2);
  const Outcome text = Ctl({"rules"});
  EXPECT_NE(text.out.find("has no rules"), std::string::npos) << text.out;
}

// After a reload the rules of a file mean what they mean in a fresh mount.
TEST_F(RulesMountTest, ReloadedRulesNameTheTracersOfTheWholeFile) {
  const auto watch = [&](const char* actions, const char* trace) {
    return "watch { { op = rmdir } { when seen(unlink by inode) then { alarm "
           "\"x\"; " +
           std::string(actions) + " } } { file = \"" + Path(trace) + "\" } }\n";
  };
  const std::string bulk = "bulk " + Tracer("op = mkdir", "bulk.trace") + "\n";
  const auto state = [&](uint32_t id) {
    return TracerIn(Ask("list"), id)["state"];
  };
  const auto fire = [&](int count) {
    const std::string file = In("x" + std::to_string(count));
    Write(file, "");
    ASSERT_EQ(::unlink(file.c_str()), 0);
  };
  Mount(bulk + watch("", "watch.trace"));
  int fired = 0;
  for (const char* name : {"1", "bulk"}) {
    const std::string stop = std::string("stop ") + name;
    const Outcome reloaded = Ctl(
        {"reload", Config("other.conf",
                          bulk + watch(stop.c_str(),
                                       (std::string(name) + "w").c_str()))});
    ASSERT_EQ(reloaded.status, 0) << reloaded.err;
    fire(++fired);
    EXPECT_TRUE(WaitUntil([&] { return state(1) == "stopped"; })) << name;
    ASSERT_EQ(Ctl({"start", "1"}).status, 0);
  }
}

TEST_F(RulesMountTest, RulesThatStayFollowTheTracersThatTheyName) {
  const std::string watch =
      "watch { { op = rmdir } { when seen(unlink by inode) then { snapshot "
      "box; "
      "snapshot 2 } } { file = \"" +
      Path("watch.trace") + "\" } }\n";
  const auto box = [&](const char* name) {
    return "box { { } { } { flight = \"" + Path(name) + "\" size = 2M } }\n";
  };
  const auto fire = [&](const char* name) {
    Write(In(name), "");
    ASSERT_EQ(::unlink(In(name).c_str()), 0);
  };
  Mount(watch + box("one"));
  const auto reload = [&](const std::string& text) {
    const Outcome reloaded = Ctl({"reload", Config("other.conf", text)});
    ASSERT_EQ(reloaded.status, 0) << reloaded.err;
    EXPECT_NE(reloaded.out.find("1 tracers as they were"), std::string::npos)
        << reloaded.out;
  };
  // Another recorder of that name and number.
  reload(watch + box("two"));
  fire("x");
  EXPECT_TRUE(
      WaitUntil([&] { return std::filesystem::exists(Path("two.000002")); }));
  EXPECT_FALSE(std::filesystem::exists(Path("one.000001")));
  // Another number, for another tracer.
  const std::string other =
      "other { { } { } { flight = \"" + Path("three") + "\" size = 2M } }\n";
  const Outcome moved =
      Ctl({"reload", Config("other.conf", watch + other + box("two"))});
  ASSERT_EQ(moved.status, 0) << moved.err;
  fire("y");
  EXPECT_TRUE(
      WaitUntil([&] { return std::filesystem::exists(Path("three.000001")); }));
  EXPECT_TRUE(std::filesystem::exists(Path("two.000003")));
  // A file that a mount would refuse changes nothing.
  const json before = Ask("list");
  const Outcome refused = Ctl({"reload", Config("other.conf", watch)});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("there is no tracer 'box'"), std::string::npos)
      << refused.err;
  EXPECT_EQ(Ask("list"), before);
}

TEST_F(RulesMountTest, DataLoss_WhatHappensJustBeforeTheEndStillRaisesAlarm) {
  Mount(
      "{ { op = rmdir } { when seen(unlink) then { alarm \"at last\" } } { "
      "file = \"" +
      Path("watch.trace") + "\" } }");
  Write(In("x"), "");
  ASSERT_EQ(::unlink(In("x").c_str()), 0);
  Unmount();
  const std::vector<json> alarms = AlarmsIn("watch.trace");
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0]["alarm"], "at last");
}

// --- Alarms are events.

TEST_F(RulesMountTest, AlarmsAreInTheTraceWithTimeAndAllValues) {
  Mount(
      "{ { op = unlink } { stream = { STR_ALL }; when seen(unlink by uid) then "
      "{ alarm \"it is gone\"; start 1 } } { file = \"" +
      Path("watch.trace") + "\" } }");
  Write(In("x"), "");
  ASSERT_EQ(::unlink(In("x").c_str()), 0);
  ASSERT_TRUE(WaitForAlarms("it is gone", 1));
  Unmount();
  const std::vector<json> lines = Events("watch.trace");
  ASSERT_EQ(lines.size(), 2u);
  const json& unlink = lines[0];
  json alarm = lines[1];  // behind what raised it
  EXPECT_EQ(alarm["alarm"], "it is gone");
  EXPECT_EQ(alarm["by"], "uid");
  EXPECT_EQ(alarm["key"], "0");
  EXPECT_EQ(alarm["count"], 1);
  EXPECT_EQ(alarm["actions"], json::array({"start 1: done"}));
  // Whatever its own line says of the operation, and nothing else.
  for (const char* key : {"ts", "op", "dur", "tid", "pid", "uid", "gid", "comm",
                          "path", "ino", "result", "ppid", "sid", "pgid"}) {
    EXPECT_EQ(alarm[key], unlink[key]) << key;
  }
  const std::string text = Dumped("watch.trace", "text");
  EXPECT_NE(text.find(" alarm \"it is gone\": rule=1 by=uid key=0 count=1 "
                      "op=unlink"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" path=/x "), std::string::npos) << text;
  EXPECT_NE(text.find(" action=\"start 1: done\"\n"), std::string::npos)
      << text;
  const std::string ocsf = Dumped("watch.trace", "ocsf");
  EXPECT_NE(ocsf.find("\"class_uid\":2004"), std::string::npos) << ocsf;
  const std::string ecs = Dumped("watch.trace", "ecs");
  EXPECT_NE(ecs.find("\"kind\":\"alert\""), std::string::npos) << ecs;
  const std::string cef = Dumped("watch.trace", "cef");
  EXPECT_NE(cef.find("|alarm|it is gone|8|"), std::string::npos) << cef;
}

TEST_F(RulesMountTest, AlarmsAreInEveryFeed) {
  std::string config;
  const std::map<std::string, std::string> feeds = {
      {"ocsf", "\"title\":\"gone\""},
      {"ecs", "\"name\":\"gone\""},
      {"cef", "|alarm|gone|8|"},
      {"native", ""}};
  for (const auto& [feed, sign] : feeds) {
    config +=
        "{ { op = rmdir } { when seen(unlink) then { alarm \"gone\" } } "
        "{ file = \"" +
        Path(feed) + "\" feed = " + feed + " } }\n";
  }
  Mount(config);
  Write(In("x"), "");
  ASSERT_EQ(::unlink(In("x").c_str()), 0);
  Unmount();
  for (const auto& [feed, sign] : feeds) {
    if (feed == "native") {
      EXPECT_EQ(AlarmsIn(feed).size(), 1u);
    } else {
      EXPECT_NE(Read(Path(feed)).find(sign), std::string::npos)
          << Read(Path(feed));
    }
  }
}

TEST_F(RulesMountTest, FollowPrintsAlarmsAsTheyCome) {
  Mount(
      "{ { op = rmdir } { when seen(unlink by inode) then { alarm \"gone\" } } "
      "{ file = \"" +
      Path("watch.trace") + "\" } }");
  Write(In("before"), "");
  ASSERT_EQ(::unlink(In("before").c_str()), 0);
  ASSERT_TRUE(WaitForAlarms("gone", 1));
  Command follow(CtlWords({"rules", "--follow"}));
  Command json_lines(CtlWords({"rules", "--follow", "--format", "json"}));
  // They have begun to look once they show something.
  for (int i = 0; i < 100 && (follow.out().empty() || json_lines.out().empty());
       ++i) {
    const std::string name = In("x \n" + std::to_string(i));
    Write(name, "");
    ASSERT_EQ(::unlink(name.c_str()), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  Unmount();
  EXPECT_EQ(follow.Wait(), 0);
  EXPECT_EQ(json_lines.Wait(), 0);
  const std::string text = follow.out();
  EXPECT_NE(text.find(" rule 1 of tracer 1 gone: unlink \"/x \\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("unlink /before"), std::string::npos) << text;
  EXPECT_EQ(text.find("unlink \"/before"), std::string::npos) << text;
  std::istringstream lines(json_lines.out());
  for (std::string line; std::getline(lines, line);) {
    const json alarm = json::parse(line);
    EXPECT_EQ(alarm["title"], "gone");
    EXPECT_EQ(alarm["path"].get<std::string>().substr(0, 4), "/x \n");
  }
}

// Each removes one file and ends.
TEST_F(RulesMountTest, ManyShortLivedProcessesAreCaught) {
  std::string rules;
  for (const char* key : {"uid", "sid", "pgid", "ppid", "tree", "cname"}) {
    rules += std::string("when rate(unlink by ") + key +
             ") > 100/60s then { alarm \"" + key + "\" };\n";
  }
  Mount("{ { op = rmdir } { " + rules +
        " when rate(unlink by pid) > 1/60s then { alarm \"pid\" } } { file = "
        "\"" +
        Path("watch.trace") + "\" } }");
  Shell("for i in $(seq 150); do : > f$i; done");
  Shell("for i in $(seq 150); do rm f$i; done");
  for (const char* key : {"uid", "sid", "pgid", "ppid", "tree", "cname"}) {
    EXPECT_TRUE(WaitForAlarms(key, 1)) << key;
  }
  EXPECT_EQ(Alarms()["pid"], 0);  // which is why
  // The shell, and nobody above it.
  EXPECT_EQ(Alarms()["tree"], 1);
  const std::string shell = RuleOf("ppid")["last"][0]["key"];
  EXPECT_EQ(RuleOf("tree")["last"][0]["key"],
            "tree " + shell.substr(shell.find(' ') + 1));
  // Others of the same key touched the other paths.
  for (const char* key : {"uid", "sid", "pgid", "ppid", "tree", "cname"}) {
    const json alarm = RuleOf(key)["last"][0];
    EXPECT_EQ(alarm["touched"].size(), 8u) << alarm;
    EXPECT_EQ(alarm["touched"][0], alarm["path"]) << alarm;
  }
}

TEST_F(RulesMountTest, AProcessTreeIsCaughtThroughProcessesThatDoNothingElse) {
  Mount(
      "{ { op = rmdir } { when rate(unlink by tree) > 100/60s then { alarm "
      "\"tree\" } } { file = \"" +
      Path("watch.trace") + "\" } }");
  Shell("for i in $(seq 150); do : > f$i; done");
  // A new session each, with a shell between: no key but the tree is theirs.
  Shell(
      "for i in $(seq 150); do setsid --wait sh -c \"sh -c 'rm f$i; true'; "
      "true\"; done");
  EXPECT_TRUE(WaitForAlarms("tree", 1));
  EXPECT_EQ(Alarms()["tree"], 1);
}

TEST_F(RulesMountTest, Race_RulesComeAndGoUnderLoad) {
  Mount(Tracer("op = rmdir", "first.trace"));
  std::atomic<bool> done{false};
  std::thread load([&] {
    for (int i = 0; !done; ++i) {
      const std::string path = In("d" + std::to_string(i % 7));
      ASSERT_EQ(::mkdir(path.c_str(), 0755), 0) << std::strerror(errno);
      ASSERT_EQ(::rmdir(path.c_str()), 0) << std::strerror(errno);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  for (uint32_t id = 2; id < 22; ++id) {
    const std::string trace = Path("r" + std::to_string(id) + ".trace");
    const Outcome added = Ctl(
        {"add",
         Config("rules.conf",
                "{ { op = mkdir } { when rate(mkdir by pid) > 5/s then { raise "
                "1 for 1h; stop 1; start 1 }; when seen(rmdir) then { } } { "
                "file = \"" +
                    trace + "\" } }")});
    ASSERT_EQ(added.status, 0) << added.err;
    ASSERT_EQ(added.out, std::to_string(id) + '\n');
    if (id % 2 == 0) {
      EXPECT_TRUE(
          WaitUntil([&] { return Ask("rules")["rules"][1]["alarms"] == 1; }));
    }
    ASSERT_EQ(Ctl({"remove", std::to_string(id)}).status, 0);
    ASSERT_TRUE(Ask("rules")["raised"].empty());
  }
  done = true;
  load.join();
}

// --- What is refused.

TEST_F(RulesMountTest, RulesThatCanNeverFireAreRefusedAndChangeNothing) {
  Mount(Tracer("op = rmdir", "first.trace"));
  const json before = Ask("list");
  const std::map<std::string, std::string> cases = {
      {"seen(op = unlink AND op = rename) then { }",
       "bad.conf:1:25: this rule can never fire"},
      {"rate(unlink) > 99999999/s then { }", "can never fire"},
      {"seen(unlink) then { raise 3 for 1s }", "there is no tracer '3'"},
      {"seen(unlink) then { raise watc for 1s }", "did you mean 'watch'?"},
      {"seen(unlink) then { snapshot 1 }", "only a flight recorder"},
      {"seen(cuid = no-such) then { }", "there is no user 'no-such'"},
      {"sen(unlink) then { }", "did you mean 'seen'?"},
      {"seen(unlink) then { raise 1 for 1s", "bad.conf:1:"},
  };
  for (const auto& [rule, message] : cases) {
    const Outcome added =
        Ctl({"add", Config("bad.conf", "watch { { } { when " + rule +
                                           " } { file = \"" +
                                           Path("bad.trace") + "\" } }")});
    EXPECT_EQ(added.status, 2) << rule;
    EXPECT_NE(added.err.find(message), std::string::npos)
        << rule << ": " << added.err;
    EXPECT_FALSE(std::filesystem::exists(Path("bad.trace"))) << rule;
    EXPECT_EQ(Ask("list"), before) << rule;
  }
  const Outcome check = RunCommand({"tracefs-mount", "--check",
                                    Config("bad.conf",
                                           "{ { } { when seen(op = unlink AND "
                                           "op = rename) then { } } { file = "
                                           "\"x\" } }")});
  EXPECT_EQ(check.status, 2);
  EXPECT_NE(check.err.find("can never fire"), std::string::npos) << check.err;
}

}  // namespace
}  // namespace tracefs::testing
