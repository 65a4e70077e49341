// Live control of a real mount through the real tracefs-ctl: questions,
// tracers that come, go, rest and change, what the kernel may keep, live
// operations, and who may ask.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "tests/mount/control/live_mount.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/control/place.h"

namespace tracefs::testing {
namespace {

using nlohmann::json;

class ControlMountTest : public LiveMountTest {
 protected:
  std::string SocketPath() const {
    const auto mount = IdentifyMount(Path("mnt"));
    EXPECT_TRUE(mount.ok()) << mount.status().message();
    return "/run/tracefs/" + mount->SocketName();
  }

  // Makes and removes `count` directories of one name after the other.
  void MakeAndRemove(const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string path = In(prefix + std::to_string(i));
      EXPECT_EQ(::mkdir(path.c_str(), 0755), 0) << std::strerror(errno);
      EXPECT_EQ(::rmdir(path.c_str()), 0) << std::strerror(errno);
    }
  }

  static Command::Options Nobody() {
    Command::Options options;
    options.uid = 65534;
    return options;
  }

  // How often each path was made, or removed, in the eyes of a tracer.
  static std::map<std::string, int> CountsOf(const std::vector<json>& events,
                                             std::string_view op) {
    std::map<std::string, int> counts;
    for (const json& event : events) {
      if (event.value("op", "") == op) ++counts[event.value("path", "")];
    }
    return counts;
  }
};

TEST_F(ControlMountTest, QuestionsAreAnsweredFromAnywhereInTheMount) {
  Mount("full " + Tracer("", "full.trace"));
  MakeAndRemove("d", 3);
  ASSERT_EQ(Ctl({"flush"}).status, 0);
  const json list = Ask("list");
  EXPECT_EQ(list["mount"], Path("mnt"));
  EXPECT_EQ(list["source"], Path("src"));
  const json tracer = TracerIn(list, 1);
  EXPECT_EQ(tracer["name"], "full");
  EXPECT_EQ(tracer["state"], "running");
  EXPECT_EQ(tracer["filter"], "");
  EXPECT_EQ(tracer["output"], "file");

  const json stats = TracerIn(Ask("stats"), 1);
  EXPECT_EQ(stats["seen"], stats["matched"]);
  EXPECT_EQ(stats["seen"], stats["encoded"]);
  EXPECT_GE(stats["ops"]["mkdir"], 3);
  EXPECT_TRUE(stats["lost"].empty());
  EXPECT_EQ(stats["stages"][0]["name"], "file");
  EXPECT_GT(stats["stages"][0]["bytes_in"], 100);

  Write(In("file"), "x");
  EXPECT_EQ(RunCommand({"tracefs-ctl", In("file"), "list"}).status, 0);
  for (const char* command : {"list", "stats", "explain"}) {
    const Outcome text = Ctl({command});
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_NE(text.out.find("full"), std::string::npos) << text.out;
  }
}

TEST_F(ControlMountTest, FlushMakesTheTraceCurrent) {
  Mount(Tracer("op = mkdir", "mkdir.trace"));
  ASSERT_EQ(::mkdir(In("here").c_str(), 0755), 0);
  ASSERT_EQ(Ctl({"flush"}).status, 0);
  const Outcome dump =
      RunCommand({"tracefs-dump", "--format", "jsonl", Path("mkdir.trace")});
  EXPECT_NE(dump.out.find("\"/here\""), std::string::npos) << dump.err;
}

TEST_F(ControlMountTest, AddedTracerSeesWhatBeginsAfterwardsUntilItIsRemoved) {
  Mount(Tracer("op = mkdir", "first.trace"));
  ASSERT_EQ(::mkdir(In("before").c_str(), 0755), 0);
  const Outcome added =
      Ctl({"add", Config("more.conf", Tracer("op = mkdir", "more.trace") +
                                          Tracer("op = rmdir AND name = during",
                                                 "rmdir.trace"))});
  ASSERT_EQ(added.status, 0) << added.err;
  EXPECT_EQ(added.out, "2\n3\n");
  ASSERT_EQ(::mkdir(In("during").c_str(), 0755), 0);
  ASSERT_EQ(::rmdir(In("during").c_str()), 0);
  ASSERT_EQ(Ctl({"remove", "2"}).status, 0);
  ASSERT_EQ(::mkdir(In("after").c_str(), 0755), 0);
  // Complete while the mount goes on.
  const std::vector<json> more = Events("more.trace");
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0]["path"], "/during");
  EXPECT_EQ(more[0]["tracer"], 2);
  EXPECT_TRUE(TracerIn(Ask("list"), 2).is_null());
  Unmount();
  EXPECT_EQ(Events("first.trace").size(), 3u);
  EXPECT_EQ(Events("rmdir.trace").size(), 1u);
}

TEST_F(ControlMountTest, OutputsOfAnAddedConfigLieWhereItsOwnerIs) {
  Mount(Tracer("op = mkdir", "first.trace"));
  std::filesystem::create_directory(Path("elsewhere"));
  const std::string config = Config(
      "relative.conf", "{ { op = mkdir } { } { file = \"here.trace\" } }");
  const Outcome added =
      RunCommand(CtlWords({"add", config}), {.directory = Path("elsewhere")});
  ASSERT_EQ(added.status, 0) << added.err;
  ASSERT_EQ(::mkdir(In("x").c_str(), 0755), 0);
  Unmount();
  EXPECT_EQ(Events("elsewhere/here.trace").size(), 1u);
}

TEST_F(ControlMountTest, ConfigThatFailsHalfWayChangesNothing) {
  Mount(Tracer("op = mkdir", "first.trace"));
  const json before = Ask("list");
  Write(Path("exists.trace"), "precious");
  const struct {
    const char* what;
    std::string config;
    const char* message;
  } cases[] = {
      {"syntax", Tracer("op = mkdir", "a.trace") + "{ { op = mkdir }",
       "bad.conf:2:"},
      {"filter", Tracer("op = mkdir", "a.trace") + Tracer("opp = 3", "b.trace"),
       "did you mean 'op'"},
      {"user",
       Tracer("op = mkdir", "a.trace") + Tracer("cuid = no-such", "b.trace"),
       "there is no user 'no-such'"},
      {"file",
       Tracer("op = mkdir", "a.trace") + Tracer("op = mkdir", "exists.trace"),
       "a trace never replaces a file"},
      {"twice",
       Tracer("op = mkdir", "a.trace") + Tracer("op = rmdir", "a.trace"),
       "a trace never replaces a file"},
      {"inside",
       Tracer("op = mkdir", "a.trace") + Tracer("op = mkdir", "mnt/b.trace"),
       "lies in the mount itself"},
      {"missing directory",
       Tracer("op = mkdir", "a.trace") + Tracer("op = mkdir", "no/b.trace"),
       "No such file"},
      {"empty", "", "bad.conf"},
  };
  for (const auto& c : cases) {
    const Outcome added = Ctl({"add", Config("bad.conf", c.config)});
    EXPECT_NE(added.status, 0) << c.what;
    EXPECT_NE(added.err.find(c.message), std::string::npos)
        << c.what << ": " << added.err;
    EXPECT_FALSE(std::filesystem::exists(Path("a.trace"))) << c.what;
    EXPECT_FALSE(std::filesystem::exists(Path("b.trace"))) << c.what;
    EXPECT_FALSE(std::filesystem::exists(Below("b.trace"))) << c.what;
    EXPECT_EQ(Ask("list"), before) << c.what;
  }
  EXPECT_EQ(Read(Path("exists.trace")), "precious");
  // The ids of what failed are given to what works.
  EXPECT_EQ(
      Ctl({"add", Config("good.conf", Tracer("op = mkdir", "c.trace"))}).out,
      "2\n");
}

TEST_F(ControlMountTest, StoppedTracerRestsAndItsTraceSaysSo) {
  Mount(Tracer("op = mkdir", "first.trace"));
  ASSERT_EQ(::mkdir(In("one").c_str(), 0755), 0);
  ASSERT_EQ(Ctl({"stop", "1"}).status, 0);
  EXPECT_EQ(TracerIn(Ask("list"), 1)["state"], "stopped");
  ASSERT_EQ(::mkdir(In("two").c_str(), 0755), 0);
  ASSERT_EQ(Ctl({"start", "1"}).status, 0);
  ASSERT_EQ(::mkdir(In("three").c_str(), 0755), 0);
  Unmount();
  const Outcome dump =
      RunCommand({"tracefs-dump", "--format", "jsonl", Path("first.trace")});
  EXPECT_EQ(dump.status, 0);
  EXPECT_NE(dump.err.find("tracer.state=stopped"), std::string::npos);
  EXPECT_NE(dump.err.find("tracer.state=running"), std::string::npos);
  const std::vector<json> events = Events("first.trace");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["path"], "/one");
  EXPECT_EQ(events[1]["path"], "/three");
}

TEST_F(ControlMountTest, FilterIsReplacedAtOnceOrNotAtAll) {
  Mount(Tracer("op = mkdir", "first.trace"));
  ASSERT_EQ(::mkdir(In("one").c_str(), 0755), 0);
  const Outcome bad = Ctl({"set-filter", "1", "op = mkdir AND nme = two"});
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("did you mean 'name'"), std::string::npos) << bad.err;
  EXPECT_EQ(TracerIn(Ask("list"), 1)["filter"], "op = mkdir");
  ASSERT_EQ(Ctl({"set-filter", "1", "op = mkdir AND name = three"}).status, 0);
  ASSERT_EQ(::mkdir(In("two").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(In("three").c_str(), 0755), 0);
  ASSERT_EQ(Ctl({"set-filter", "1", "cuid = root AND", "op = rmdir"}).status,
            0);
  ASSERT_EQ(::rmdir(In("two").c_str()), 0);
  EXPECT_EQ(Ctl({"set-filter", "9", "op = mkdir"}).status, 2);
  Unmount();
  std::vector<std::string> seen;
  for (const json& event : Events("first.trace")) {
    seen.push_back(event["op"].get<std::string>() +
                   event["path"].get<std::string>());
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"mkdir/one", "mkdir/three",
                                            "rmdir/two"}));
}

TEST_F(ControlMountTest, NamePredicatesOfNewFiltersHoldForKnownFiles) {
  Mount(Tracer("op = mkdir", "first.trace"));
  Write(In("known.c"), "x");
  Read(In("known.c"));  // the file and its name are known by now
  ASSERT_EQ(
      Ctl({"add", Config("c.conf", Tracer("ext = c AND op = open", "c.trace"))})
          .status,
      0);
  Read(In("known.c"));
  ASSERT_EQ(Ctl({"set-filter", "2", "ext = h AND op = open"}).status, 0);
  Read(In("known.c"));
  Unmount();
  const std::vector<json> events = Events("c.trace");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["path"], "/known.c");
}

TEST_F(ControlMountTest, ExplainNamesTheTracerBehindEachChoice) {
  Mount("quiet " + Tracer("op = mkdir", "first.trace"));
  json explain = Ask("explain");
  EXPECT_EQ(explain["visibility"], "auto");
  const json names = ChoiceIn(explain, "names");
  EXPECT_EQ(names["choice"], "kept for 1 s");
  EXPECT_TRUE(names["causes"].empty());
  EXPECT_NE(names["hides"], "");
  EXPECT_EQ(ChoiceIn(explain, "close")["causes"].size(), 0u);
  EXPECT_FALSE(ChoiceIn(explain, "transport")["why"].empty());
  EXPECT_EQ(ChoiceIn(explain, "locks")["for_good"], true);

  ASSERT_EQ(Ctl({"add", Config("lookups.conf",
                               "nosy " + Tracer("op = lookup AND cuid = 7",
                                                "lookups.trace"))})
                .status,
            0);
  explain = Ask("explain");
  const json now = ChoiceIn(explain, "names");
  EXPECT_EQ(now["choice"], "kept for 10 ms");
  ASSERT_EQ(now["causes"].size(), 1u);
  EXPECT_EQ(now["causes"][0]["tracer"], 2);
  EXPECT_EQ(now["causes"][0]["name"], "nosy");
  EXPECT_EQ(now["causes"][0]["op"], "lookup");
  EXPECT_NE(now["causes"][0]["filter"].get<std::string>().find("cuid = 7"),
            std::string::npos);
  ASSERT_EQ(Ctl({"stop", "2"}).status, 0);
  EXPECT_EQ(ChoiceIn(Ask("explain"), "names")["choice"], "kept for 1 s");
}

TEST_F(ControlMountTest, ProcessesAreWatchedWhileATracerWantsThem) {
  constexpr char kSubject[] = "processes of the machine";
  Mount(Tracer("op = mkdir", "first.trace"));
  EXPECT_EQ(ChoiceIn(Ask("explain"), kSubject)["choice"], "not asked for");
  const auto add = [this](const std::string& name) {
    return Ctl({"add", Config(name + ".conf",
                              "{ { op = mkdir } { stream = { STR_ALL | "
                              "STR_PROCESS } } { file = \"" +
                                  Path(name + ".trace") + "\" } }")});
  };
  const Outcome added = add("processes");
  if (added.err.find("process records") != std::string::npos) {
    GTEST_SKIP() << added.err;
  }
  ASSERT_EQ(added.status, 0) << added.err;
  ASSERT_EQ(add("again").status, 0);
  ASSERT_EQ(Ctl({"stop", "2"}).status, 0);
  EXPECT_NE(ChoiceIn(Ask("explain"), kSubject)["choice"], "not asked for");
  ASSERT_EQ(Ctl({"stop", "3"}).status, 0);
  EXPECT_NE(ChoiceIn(Ask("explain"), kSubject)["choice"], "not asked for")
      << "a stopped tracer may run again";
  ASSERT_EQ(Ctl({"remove", "3"}).status, 0);
  EXPECT_NE(ChoiceIn(Ask("explain"), kSubject)["choice"], "not asked for");
  ASSERT_EQ(Ctl({"remove", "2"}).status, 0);
  EXPECT_EQ(ChoiceIn(Ask("explain"), kSubject)["choice"], "not asked for");
}

TEST_F(ControlMountTest, FilesOpenedBeforeAChangeAreNamed) {
  Mount(Tracer("op = mkdir", "first.trace"));
  Write(In("data"), "some data");
  const UniqueFd open(::open(In("data").c_str(), O_RDONLY));
  ASSERT_TRUE(open);
  EXPECT_EQ(Ask("explain")["open"]["opened_before"], 0);
  ASSERT_EQ(Ctl({"add", Config("reads.conf", Tracer("op = read AND ext != zz "
                                                    "OR op = read",
                                                    "reads.trace"))})
                .status,
            0);
  const json explain = Ask("explain");
  EXPECT_EQ(explain["open"]["files"], 1);
  EXPECT_EQ(explain["open"]["opened_before"], 1);
  EXPECT_EQ(explain["open"]["examples"][0]["path"], "/data");
  char buffer[16];
  EXPECT_EQ(::pread(open.get(), buffer, sizeof buffer, 0), 9);
  const UniqueFd again(::open(In("data").c_str(), O_RDONLY));
  EXPECT_EQ(::pread(again.get(), buffer, sizeof buffer, 0), 9);
  // Beside the first its reads are seen, but a map of it would not be.
  EXPECT_EQ(Ask("explain")["open"]["opened_before"], 2);
  ASSERT_EQ(Ctl({"remove", "2"}).status, 0);
  // The one that was opened meanwhile is the odd one now.
  EXPECT_EQ(Ask("explain")["open"]["opened_before"], 1);
  const std::vector<json> reads = Events("reads.trace");
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0]["result"], 9);
}

TEST_F(ControlMountTest, NamesThatTheKernelKeepsAreLookedUpForANewTracer) {
  Mount(Tracer("op = mkdir", "first.trace"), {"--visibility", "fast"});
  Write(In("kept"), "x");
  struct stat st;
  ASSERT_EQ(::stat(In("kept").c_str(), &st), 0);
  ASSERT_EQ(
      Ctl({"add", Config("l.conf", Tracer("op = lookup", "lookup.trace"))})
          .status,
      0);
  ASSERT_EQ(::stat(In("kept").c_str(), &st), 0);
  ASSERT_EQ(Ctl({"remove", "2"}).status, 0);
  const auto lookups = CountsOf(Events("lookup.trace"), "lookup");
  if (lookups.empty()) GTEST_SKIP() << "needs Linux 6.16 and libfuse 3.18";
  EXPECT_EQ(lookups.count("/kept"), 1u);
}

TEST_F(ControlMountTest, Race_TracersComeAndGoUnderLoadAndTheOthersKeepAll) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20;
  // A thousand tracers: TRACEFS_ROUNDS=334.
  const char* given = ::getenv("TRACEFS_ROUNDS");
  const int rounds = given != nullptr ? std::atoi(given) : 12;
  Mount(Tracer("op IN { mkdir rmdir }", "lasting.trace") +
        Tracer("op = mkdir", "resting.trace"));
  std::vector<std::thread> load;
  std::atomic<bool> done{false};
  std::atomic<size_t> made{0};
  for (int t = 0; t < kThreads; ++t) {
    load.emplace_back([&, t] {
      for (int i = 0; !done; ++i, made += kEach) {
        MakeAndRemove("t" + std::to_string(t) + '-' + std::to_string(i) + '-',
                      kEach);
        // The kernel tells what is gone only when it has time to.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  }
  const std::string config =
      Config("passing.conf",
             "{ { op IN { mkdir rmdir } AND cuid = root } { } { compress; file "
             "= \"passing.trace\" } }");
  const std::string twice =
      Config("twice.conf",
             "{ { } { } { file = \"one.trace\" } }\n{ { ext = c } "
             "{ } { async; file = \"two.trace\" } }");
  int added = 0;
  for (uint32_t id = 3; added < rounds; ++added) {
    const Command::Options there = {.uid = 0, .directory = scratch_};
    const Outcome one = RunCommand(CtlWords({"add", config}), there);
    ASSERT_EQ(one.status, 0) << one.err;
    ASSERT_EQ(one.out, std::to_string(id) + '\n');
    ASSERT_EQ(Ctl({"stop", "2"}).status, 0);
    const Outcome two = RunCommand(CtlWords({"add", twice}), there);
    ASSERT_EQ(two.status, 0) << two.err;
    ASSERT_EQ(Ctl({"set-filter", std::to_string(id), "op = rmdir"}).status, 0);
    ASSERT_EQ(Ctl({"start", "2"}).status, 0);
    for (uint32_t i = 0; i < 3; ++i) {
      ASSERT_EQ(Ctl({"remove", std::to_string(id + i)}).status, 0);
    }
    id += 3;
    // Each trace that came and went is complete, and doubles nothing.
    for (const char* trace : {"passing.trace", "one.trace", "two.trace"}) {
      for (const char* op : {"mkdir", "rmdir"}) {
        for (const auto& [path, count] : CountsOf(Events(trace), op)) {
          ASSERT_EQ(count, 1) << trace << ' ' << op << ' ' << path;
        }
      }
      std::filesystem::remove(Path(trace));
    }
  }
  done = true;
  for (std::thread& thread : load) thread.join();
  Unmount();
  const std::vector<json> events = Events("lasting.trace");
  for (const char* op : {"mkdir", "rmdir"}) {
    const auto counts = CountsOf(events, op);
    EXPECT_EQ(counts.size(), made.load()) << op;
    for (const auto& [path, count] : counts) {
      ASSERT_EQ(count, 1) << op << ' ' << path;
    }
  }
  for (const auto& [path, count] : CountsOf(Events("resting.trace"), "mkdir")) {
    ASSERT_EQ(count, 1) << path;
  }
  RecordProperty("added", added);
}

TEST_F(ControlMountTest, TailShowsWhatHappensAndDisturbsNobody) {
  Mount(Tracer("op = mkdir", "first.trace"));
  const json before = Ask("explain")["choices"];
  Command text(CtlWords({"tail", "op IN { mkdir rmdir }"}));
  Command lines(CtlWords({"tail", "--format", "jsonl", "name = b"}));
  for (int i = 0; i < 2000 && Ask("list")["tracers"].size() < 3; ++i) {
  }
  ASSERT_EQ(::mkdir(In("a").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(In("b").c_str(), 0755), 0);
  // Both come while the mount goes on.
  for (int i = 0; i < 1000 && (text.out().find("/b") == std::string::npos ||
                               lines.out().find("/b") == std::string::npos);
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_NE(text.out().find(" mkdir    /a "), std::string::npos) << text.out();
  bool made = false;
  std::istringstream in(lines.out());
  for (std::string line; std::getline(in, line);) {
    const json event = json::parse(line);
    EXPECT_EQ(event["path"], "/b");
    made |= event["op"] == "mkdir";
  }
  EXPECT_TRUE(made);
  // One is interrupted, the other ends with the mount; both in order.
  text.Signal(SIGINT);
  EXPECT_EQ(text.Wait(), 0) << text.err();
  EXPECT_EQ(text.err(), "");
  for (int i = 0; i < 1000 && Ask("list")["tracers"].size() != 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(Ask("list")["tracers"].size(), 2u);
  EXPECT_NE(Ask("explain")["choices"], before);  // one still listens
  Unmount();
  EXPECT_EQ(lines.Wait(), 0) << lines.err();
  EXPECT_EQ(Events("first.trace").size(), 2u);
}

TEST_F(ControlMountTest, DataLoss_SlowListenerLosesAndTheMountGoesOn) {
  Mount(Tracer("op = lookup AND errno = ENOENT", "first.trace"));
  Command tail(CtlWords(
      {"tail", "--format", "jsonl", "op = lookup AND errno = ENOENT"}));
  for (int i = 0; i < 2000 && Ask("list")["tracers"].size() < 2; ++i) {
  }
  const uint32_t id = 1u << 30;
  ASSERT_FALSE(TracerIn(Ask("list"), id).is_null());
  tail.Signal(SIGSTOP);
  // More than its queue and its socket can hold.
  const std::string missing = In(std::string(250, 'm'));
  int made = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 5000; ++i, ++made) {
      struct stat st;
      ASSERT_NE(::stat(missing.c_str(), &st), 0);
    }
    if (TracerIn(Ask("stats"), id)["lost"].contains("queue_full")) break;
  }
  const json stats = TracerIn(Ask("stats"), id);
  EXPECT_GT(stats["lost"].value("queue_full", 0), 0);
  EXPECT_EQ(stats["encoded"], made);
  tail.Signal(SIGCONT);
  Unmount();
  EXPECT_EQ(tail.Wait(), 0);
  EXPECT_NE(tail.err().find("not recorded: queue_full"), std::string::npos)
      << tail.err();
  // What came and what is told to be lost is all that there was.
  int came = 0;
  std::istringstream in(tail.out());
  for (std::string line; std::getline(in, line);) ++came;
  int lost = 0;
  std::istringstream words(tail.err());
  for (std::string line; std::getline(words, line);) {
    constexpr std::string_view kBefore = "tracefs-ctl: ";
    if (line.find("not recorded") != std::string::npos) {
      lost += std::stoi(line.substr(kBefore.size()));
    }
  }
  EXPECT_EQ(came + lost, made);
  EXPECT_EQ(Events("first.trace").size(), static_cast<size_t>(made));
}

TEST_F(ControlMountTest, ListenersAreFewAtATime) {
  Mount(Tracer("op = rmdir", "first.trace"));
  std::vector<std::unique_ptr<Command>> tails;
  for (size_t i = 0; i < 8; ++i) {
    tails.push_back(
        std::make_unique<Command>(CtlWords({"tail", "op = mkdir"})));
    for (int n = 0; n < 2000 && Ask("list")["tracers"].size() < i + 2; ++n) {
    }
  }
  const Outcome one_more = Ctl({"tail", "op = mkdir"});
  EXPECT_EQ(one_more.status, 2);
  EXPECT_NE(one_more.err.find("listen already"), std::string::npos);
  // Killed in the middle; their places are free again.
  tails.clear();
  for (int i = 0; i < 2000 && Ask("list")["tracers"].size() > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(Ask("list")["tracers"].size(), 1u);
}

// What was chosen because of tracers; not what goes by how long requests take.
json ChoicesForTracers(const json& explained) {
  json choices = json::array();
  for (const json& choice : explained["choices"]) {
    if (choice["subject"] != "waits below") choices.push_back(choice);
  }
  return choices;
}

TEST_F(ControlMountTest, TopFillsATerminalAndObeysKeys) {
  Mount(Tracer("op = mkdir", "first.trace"));
  const json choices = ChoicesForTracers(Ask("explain"));
  std::atomic<bool> done{false};
  std::thread load([&] {
    while (!done) MakeAndRemove("busy", 10);
  });
  winsize size{};
  size.ws_col = 120;
  size.ws_row = 40;
  int terminal = -1;
  termios before{};
  const std::string ctl = std::string(::getenv("TRACEFS_BIN")) + "/tracefs-ctl";
  const std::string mnt = Path("mnt");
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    ::execl(ctl.c_str(), ctl.c_str(), mnt.c_str(), "top", "--interval", "100ms",
            nullptr);
    ::_exit(127);
  }
  ::tcgetattr(terminal, &before);
  std::string screen;
  const auto read_until = [&](std::string_view text) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    screen.clear();
    while (screen.find(text) == std::string::npos &&
           std::chrono::steady_clock::now() < end) {
      pollfd ready = {terminal, POLLIN, 0};
      if (::poll(&ready, 1, 100) <= 0) continue;
      char buffer[65536];
      const ssize_t n = ::read(terminal, buffer, sizeof buffer);
      if (n <= 0) break;
      screen.append(buffer, static_cast<size_t>(n));
    }
    return screen.find(text) != std::string::npos;
  };
  EXPECT_TRUE(read_until("\x1b[?1049h")) << screen;  // a screen of its own
  EXPECT_TRUE(read_until("mkdir")) << screen;
  EXPECT_TRUE(read_until(", by count")) << screen;
  ASSERT_EQ(::write(terminal, "t", 1), 1);
  EXPECT_TRUE(read_until(", by time")) << screen;
  ASSERT_EQ(::write(terminal, "a", 1), 1);
  EXPECT_TRUE(read_until("; all ")) << screen;
  ASSERT_EQ(::write(terminal, " ", 1), 1);
  EXPECT_TRUE(read_until(", paused")) << screen;
  ASSERT_EQ(::write(terminal, "q", 1), 1);
  EXPECT_TRUE(read_until("\x1b[?1049l")) << screen;
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  termios after{};
  ::tcgetattr(terminal, &after);
  EXPECT_EQ(after.c_lflag, before.c_lflag);
  ::close(terminal);
  done = true;
  load.join();
  for (int i = 0; i < 2000 && Ask("list")["tracers"].size() > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // It costs nothing any more: no tracer, and nothing the kernel must ask.
  EXPECT_EQ(Ask("list")["tracers"].size(), 1u);
  EXPECT_EQ(ChoicesForTracers(Ask("explain")), choices);
}

TEST_F(ControlMountTest, TopIsPlainTextWhereThereIsNoTerminal) {
  Mount(Tracer("op = mkdir", "first.trace"));
  std::atomic<bool> done{false};
  std::thread load([&] {
    while (!done) MakeAndRemove("busy", 10);
  });
  const Outcome top = Ctl({"top", "--interval", "300ms", "--rounds", "2",
                           "--sort", "time", "op = mkdir"});
  done = true;
  load.join();
  EXPECT_EQ(top.status, 0) << top.err;
  EXPECT_EQ(top.out.find('\x1b'), std::string::npos);
  EXPECT_NE(top.out.find("/busy"), std::string::npos) << top.out;
  EXPECT_EQ(top.out.find("rmdir"), std::string::npos);
  size_t titles = 0;
  for (size_t at = 0; (at = top.out.find("OPERATION", at)) != std::string::npos;
       ++at) {
    ++titles;
  }
  EXPECT_EQ(titles, 2u);
}

TEST_F(ControlMountTest, OtherUsersAreRefused) {
  Mount(Tracer("op = mkdir", "first.trace"));
  for (const char* command : {"list", "stats", "explain", "flush", "tail"}) {
    const Outcome outcome = RunCommand(CtlWords({command}), Nobody());
    EXPECT_EQ(outcome.status, 3) << command;
    EXPECT_NE(outcome.err.find("only root and the user who mounted it"),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  // Not even through a socket that somebody has opened to all.
  ASSERT_EQ(::chmod(SocketPath().c_str(), 0666), 0);
  const Outcome outcome = RunCommand(CtlWords({"list"}), Nobody());
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("only root and the user who mounted it"),
            std::string::npos);
}

TEST_F(ControlMountTest, WhatIsNoMountIsSaidSo) {
  const Outcome outcome = Ctl({"list"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("is not in a tracefs mount"), std::string::npos);
  EXPECT_EQ(RunCommand({"tracefs-ctl", Path("none"), "list"}).status, 3);
}

TEST_F(ControlMountTest, DaemonThatHangsIsNotWaitedForWithoutEnd) {
  Mount(Tracer("op = mkdir", "first.trace"));
  daemon_->Signal(SIGSTOP);
  const Outcome outcome = Ctl({"list", "--timeout", "1"});
  daemon_->Signal(SIGCONT);
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("does not answer"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(Ctl({"list"}).status, 0);
}

TEST_F(ControlMountTest, SocketGoesWithTheMount) {
  Mount(Tracer("op = mkdir", "first.trace"));
  const std::string socket = SocketPath();
  struct stat st;
  ASSERT_EQ(::stat(socket.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  Unmount();
  EXPECT_NE(::stat(socket.c_str(), &st), 0);
}

TEST_F(ControlMountTest, Malicious_GarbageByTheHundredIsBorneUnderLoad) {
  Mount(Tracer("op IN { mkdir rmdir }", "first.trace"));
  const std::string path = SocketPath();
  const auto connect = [&] {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                        sizeof address),
              0);
    return fd;
  };
  // Forked while this process has one thread: TSan wants it so.
  int start[2];
  ASSERT_EQ(::pipe2(start, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char go;
    if (::read(start[0], &go, 1) != 1) ::_exit(1);
    int answered = ::setresuid(65534, 65534, 65534) == 0 ? 0 : 1;
    for (int i = 0; i < 300; ++i) {
      const UniqueFd fd = connect();
      static_cast<void>(
          ::send(fd.get(), "{\"command\":\"list\"}\n", 19, MSG_NOSIGNAL));
      char answer[4096];
      const ssize_t n = ::read(fd.get(), answer, sizeof answer);
      const std::string_view text(answer, n > 0 ? static_cast<size_t>(n) : 0);
      if (text.find("\"ok\":true") != std::string_view::npos) ++answered;
    }
    ::_exit(answered == 0 ? 0 : 1);
  }
  std::thread load([&] { MakeAndRemove("x", 2000); });
  const std::string big(100000, '[');
  const std::string endless(size_t{5} << 20, 'x');
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(connect());
    const UniqueFd fd = connect();
    const std::string_view what = i % 50 == 0  ? std::string_view(endless)
                                  : i % 3 == 0 ? std::string_view(big)
                                  : i % 3 == 1 ? "{\"command\":\"fly\"}\n"
                                               : "{\"command\":";
    static_cast<void>(::send(fd.get(), what.data(), what.size(), MSG_NOSIGNAL));
  }
  EXPECT_EQ(Ctl({"list"}).status, 0);
  // Another user, by the hundred, through a socket that is open to all.
  EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(::write(start[1], "x", 1), 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(start[0]);
  ::close(start[1]);
  EXPECT_EQ(Ctl({"list"}).status, 0);
  load.join();
  Unmount();
  EXPECT_EQ(Events("first.trace").size(), 4000u);
}

// What a config asks for in vain is said where it is given, and in the trace.
TEST_F(ControlMountTest, WhatAFilterAsksForInVainIsSaidEverywhere) {
  const std::string config = Tracer("op IN { access mkdir }", "a.trace") +
                             Tracer("", "b.trace") +
                             Tracer("name = flock", "c.trace");
  const Outcome check =
      RunCommand({"tracefs-mount", "--check", Config("check.conf", config)});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_FALSE(std::filesystem::exists(Path("a.trace")));
  Mount(config);
  for (const std::string& said : {check.err, daemon_->err()}) {
    EXPECT_NE(said.find(":1:4: no operation is ever 'access'"),
              std::string::npos)
        << said;
    EXPECT_EQ(said.find("locks (getlk, setlk, flock)"), std::string::npos)
        << said;
  }
  // A file called like a lock operation is none: locks stay where they were.
  EXPECT_EQ(ChoiceIn(Ask("explain"), "locks")["choice"],
            "kept by the kernel alone");
  const Outcome set = Ctl({"set-filter", "1", "latency > 5"});
  EXPECT_EQ(set.status, 0) << set.err;
  EXPECT_NE(set.err.find("has no unit"), std::string::npos) << set.err;
  const Outcome add = Ctl(
      {"add", Config("add.conf", Tracer("uid = 0 AND uid = 1", "d.trace"))});
  EXPECT_EQ(add.status, 0) << add.err;
  EXPECT_NE(add.err.find("nothing satisfies both"), std::string::npos)
      << add.err;
  Unmount();
  for (const auto& [trace, text] :
       {std::pair("a.trace", "no operation is ever"),
        std::pair("d.trace", "nothing satisfies both")}) {
    const Outcome dump = RunCommand({"tracefs-dump", "--header", Path(trace)});
    EXPECT_NE(dump.out.find("filter.warnings "), std::string::npos) << dump.out;
    EXPECT_NE(dump.out.find(text), std::string::npos) << dump.out;
  }
  const Outcome dump =
      RunCommand({"tracefs-dump", "--filter", "path ~ *.c", Path("a.trace")});
  EXPECT_EQ(dump.status, 0);
  EXPECT_NE(dump.err.find("matches no path"), std::string::npos) << dump.err;
}

// What a config names and a daemon in its sandbox cannot open comes along with
// the request: keys in files and in the environment, states, anchors, policies.
TEST_F(ControlMountTest, AConfigWithKeysCanBeAddedLater) {
  const std::string secret = Path("secret.key");
  const std::string state = Path("seal.state");
  ASSERT_EQ(RunCommand({"tracefs-keygen", "secret", secret}).status, 0);
  ASSERT_EQ(
      RunCommand({"tracefs-keygen", "seal", state, Path("verify.key")}).status,
      0);
  const std::string key_line =
      Read(secret).substr(Read(secret).find("tracefs-secret-1"));
  ASSERT_EQ(::setenv("TRACEFS_TEST_KEY", key_line.c_str(), 1), 0);
  Write(Path("own.policy"), Read(TRACEFS_RESEARCH_POLICY));
  struct Case {
    std::string name, filters, key;
  };
  const std::string from_file = "key = \"file:" + secret + "\"";
  const Case cases[] = {
      {"aes", "async; compress; encrypt " + from_file, secret},
      {"blowfish", "encrypt cipher = bf-cbc " + from_file, secret},
      {"environment", "encrypt key = \"env:TRACEFS_TEST_KEY\"", secret},
      {"sealed",
       "checksum seal = forward key = \"file:" + state +
           "\" anchor = \"file:" + Path("anchors") + "\" anchor_every = 1",
       Path("verify.key")},
      {"hidden",
       "anonymize policy = \"" + Path("own.policy") + "\" " + from_file, ""},
  };
  Mount(Tracer("op = mkdir", "first.trace"));
  for (const Case& c : cases) {
    const Outcome add = Ctl(
        {"add", Config(c.name + ".conf",
                       "{ { op = mkdir } { } { " + c.filters + "; file = \"" +
                           Path(c.name + ".trace") + "\" } }")});
    EXPECT_EQ(add.status, 0) << c.name << ": " << add.err;
  }
  MakeAndRemove("d", 25);
  // A key that is not there is the asker's mistake, and changes nothing.
  const json before = Ask("list");
  const Outcome none =
      Ctl({"add", Config("none.conf",
                         "{ { } { } { encrypt key = \"file:" + Path("no.key") +
                             "\"; file = \"" + Path("none.trace") + "\" } }")});
  EXPECT_EQ(none.status, 3);
  EXPECT_NE(none.err.find(Path("no.key")), std::string::npos) << none.err;
  // Nor may others be able to read it: the mount looks itself.
  ASSERT_EQ(::chmod(secret.c_str(), 0644), 0);
  const Outcome open =
      Ctl({"add", Config("open.conf", "{ { } { } { encrypt " + from_file +
                                          "; file = \"" + Path("none.trace") +
                                          "\" } }")});
  EXPECT_EQ(open.status, 2);
  EXPECT_NE(open.err.find("open.conf:1:"), std::string::npos) << open.err;
  EXPECT_NE(open.err.find("can be read by others"), std::string::npos)
      << open.err;
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  EXPECT_FALSE(std::filesystem::exists(Path("none.trace")));
  EXPECT_EQ(Ask("list")["tracers"].size(), before["tracers"].size());
  Unmount();
  EXPECT_EQ(daemon_->err().find("refused the system call"), std::string::npos)
      << daemon_->err();
  for (const Case& c : cases) {
    std::vector<std::string> words = {"tracefs-dump", "--format", "jsonl",
                                      Path(c.name + ".trace")};
    if (!c.key.empty()) words.insert(words.end(), {"--key", c.key});
    const Outcome dump = RunCommand(words);
    EXPECT_EQ(dump.status, 0) << c.name << ": " << dump.err;
    EXPECT_EQ(std::count(dump.out.begin(), dump.out.end(), '\n'), 25) << c.name;
  }
  EXPECT_EQ(RunCommand({"tracefs-verify", "--key", Path("verify.key"),
                        Path("sealed.trace")})
                .status,
            0);
  EXPECT_NE(Read(Path("anchors")).find("tracefs-anchor serial="),
            std::string::npos);
}

// Link count and size with reads and writes; and outputs that keep nothing.
TEST_F(ControlMountTest, ReadsAndWritesCarryAttributesWhereAsked) {
  Mount(
      "{ { op IN { read write } } { stream = { STR_ALL | STR_ATTR } } { file = "
      "\"" +
      Path("a.trace") + "\" } }\n{ { } { } { file = \"/dev/null\" } }");
  Write(In("f"), "12345");
  ASSERT_EQ(::link(In("f").c_str(), In("g").c_str()), 0);
  EXPECT_EQ(Read(In("f")), "12345");
  const Outcome add =
      Ctl({"add", Config("null.conf", "{ { } { } { file = \"/dev/null\" } }")});
  EXPECT_EQ(add.status, 0) << add.err;
  Unmount();
  struct stat st;
  ASSERT_EQ(::stat("/dev/null", &st), 0);
  EXPECT_TRUE(S_ISCHR(st.st_mode));
  int writes = 0;
  int reads = 0;
  for (const json& event : Events("a.trace")) {
    EXPECT_EQ(event.value("fsize", 0), 5) << event;
    if (event.value("op", "") == "write") {
      ++writes;
    } else {
      ++reads;
      EXPECT_EQ(event.value("nlink", 0), 2) << event;
    }
  }
  EXPECT_GT(writes, 0);
  EXPECT_GT(reads, 0);
}

}  // namespace
}  // namespace tracefs::testing
