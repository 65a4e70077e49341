#include "tests/mount/control/live_mount.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace tracefs::testing {
namespace {

using nlohmann::json;

bool IsMounted(const std::string& point) {
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.find(' ' + point + ' ') != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void LiveMountTest::SetUp() {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) {
    GTEST_SKIP() << "/dev/fuse cannot be used";
  }
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become other users";
  char name[] = "/tmp/tracefs-control-XXXXXX";
  scratch_ = ::mkdtemp(name);
  ::chmod(scratch_.c_str(), 0755);
  std::filesystem::create_directory(Path("src"));
  std::filesystem::create_directory(Path("mnt"));
  ::chmod(Path("src").c_str(), 0777);
}

void LiveMountTest::TearDown() {
  if (scratch_.empty()) return;
  if (daemon_ != nullptr && daemon_->running()) Unmount();
  EXPECT_FALSE(IsMounted(Path("mnt"))) << "left mounted";
  if (IsMounted(Path("mnt"))) RunCommand({"/bin/umount", "-l", Path("mnt")});
  daemon_.reset();
  std::filesystem::remove_all(scratch_);
}

void LiveMountTest::Write(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
}

std::string LiveMountTest::Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string LiveMountTest::Config(std::string_view name,
                                  std::string_view text) const {
  const std::string path = Path(name);
  Write(path, text);
  return path;
}

std::string LiveMountTest::Tracer(std::string_view filter,
                                  std::string_view trace) const {
  return "{ { " + std::string(filter) +
         " } { stream = { STR_ALL } } { file = \"" + Path(trace) + "\" } }\n";
}

void LiveMountTest::Mount(std::string_view config,
                          const std::vector<std::string>& options) {
  std::vector<std::string> words = {"tracefs-mount",
                                    Path("src"),
                                    Path("mnt"),
                                    "--config",
                                    Config("mount.conf", config),
                                    "--foreground"};
  words.insert(words.end(), options.begin(), options.end());
  daemon_ = std::make_unique<Command>(words);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (daemon_->err().find("mounted") == std::string::npos) {
    ASSERT_TRUE(daemon_->running()) << daemon_->err();
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int LiveMountTest::Unmount() {
  for (int i = 0; i < 600; ++i) {
    if (RunCommand({"/bin/umount", Path("mnt")}).status == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const int status = daemon_->Wait();
  EXPECT_EQ(status, 0) << daemon_->err();
  return status;
}

std::vector<std::string> LiveMountTest::CtlWords(
    const std::vector<std::string>& arguments) const {
  std::vector<std::string> words = {"tracefs-ctl", Path("mnt")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Outcome LiveMountTest::Ctl(const std::vector<std::string>& arguments) const {
  return RunCommand(CtlWords(arguments));
}

json LiveMountTest::Ask(const std::string& command) const {
  const Outcome outcome = Ctl({command, "--format", "json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

json LiveMountTest::TracerIn(const json& answer, uint32_t id) {
  for (const json& tracer : answer.value("tracers", json::array())) {
    if (tracer.value("id", 0u) == id) return tracer;
  }
  return nullptr;
}

json LiveMountTest::ChoiceIn(const json& answer, std::string_view subject) {
  for (const json& choice : answer.value("choices", json::array())) {
    if (choice.value("subject", "") == subject) return choice;
  }
  return nullptr;
}

std::vector<json> LiveMountTest::Events(const std::string& trace) const {
  const Outcome dump =
      RunCommand({"tracefs-dump", "--format", "jsonl", Path(trace)});
  EXPECT_EQ(dump.status, 0) << dump.err;
  std::vector<json> events;
  std::istringstream lines(dump.out);
  for (std::string line; std::getline(lines, line);) {
    events.push_back(json::parse(line, nullptr, false));
  }
  return events;
}

}  // namespace tracefs::testing
