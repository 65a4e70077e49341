// What tracefs-mount understands of its command line.
#include "tracefs/mount/options.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tracefs {
namespace {

using Command = MountOptions::Command;

Result<MountOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "tracefs-mount");
  return ParseOptions(static_cast<int>(words.size()), words.data());
}

MountOptions Parsed(std::vector<const char*> words) {
  const Result<MountOptions> options = Parse(std::move(words));
  EXPECT_TRUE(options.ok()) << options.status().message();
  return options.ok() ? *options : MountOptions();
}

TEST(MountOptionsTest, QueueThreadsAreMeasuredUnlessOneKindIsAskedFor) {
  EXPECT_FALSE(Parsed({"src", "mnt", "--config", "c"}).queue_threads);
  EXPECT_FALSE(
      Parsed({"src", "mnt", "--config", "c", "--queue-threads", "auto"})
          .queue_threads);
  EXPECT_EQ(Parsed({"src", "mnt", "--config", "c", "--queue-threads", "idle"})
                .queue_threads,
            ThreadPolicy::kIdle);
  const Result<MountOptions> wrong =
      Parse({"src", "mnt", "--config", "c", "--queue-threads", "fast"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("'fast'"), std::string::npos);
}

TEST(MountOptionsTest, SurvivesOverTheDeviceOnly) {
  EXPECT_FALSE(Parsed({"src", "mnt", "--config", "c"}).survive);
  const MountOptions yes =
      Parsed({"src", "mnt", "--config", "c", "--survive", "yes"});
  EXPECT_TRUE(yes.survive);
  EXPECT_EQ(yes.transport, KernelTransport::kDev);
  for (const std::vector<const char*>& more :
       std::vector<std::vector<const char*>>{{"--transport", "uring"},
                                             {"--sandbox", "strict"}}) {
    const Result<MountOptions> refused = Parse(
        {"src", "mnt", "--config", "c", "--survive", "yes", more[0], more[1]});
    ASSERT_FALSE(refused.ok()) << more[1];
    EXPECT_NE(refused.status().message().find("--survive yes"),
              std::string::npos);
  }
  EXPECT_FALSE(
      Parse({"src", "mnt", "--config", "c", "--survive", "maybe"}).ok());
}

TEST(MountOptionsTest, WithoutOptionsAllIsAsTheManualSays) {
  const MountOptions options = Parsed({"src", "mnt", "--config", "c"});
  EXPECT_EQ(options.command, Command::kMount);
  EXPECT_EQ(options.source, "src");
  EXPECT_EQ(options.mount_point, "mnt");
  EXPECT_EQ(options.config, "c");
  EXPECT_EQ(options.visibility, Visibility::kAuto);
  EXPECT_EQ(options.transport, KernelTransport::kAuto);
  EXPECT_TRUE(options.sandbox);
  EXPECT_FALSE(options.foreground);
  EXPECT_TRUE(options.metrics.empty());
  EXPECT_TRUE(options.fuse_options.empty());
}

TEST(MountOptionsTest, EachWordMeansWhatItSays) {
  const std::pair<const char*, Visibility> visibilities[] = {
      {"exact", Visibility::kExact},
      {"auto", Visibility::kAuto},
      {"fast", Visibility::kFast}};
  for (const auto& [word, meaning] : visibilities) {
    const MountOptions options =
        Parsed({"s", "m", "--config", "c", "--visibility", word});
    EXPECT_EQ(options.visibility, meaning) << word;
    EXPECT_STREQ(VisibilityName(meaning), word);
  }
  const std::pair<const char*, KernelTransport> transports[] = {
      {"auto", KernelTransport::kAuto},
      {"uring", KernelTransport::kUring},
      {"dev", KernelTransport::kDev}};
  for (const auto& [word, meaning] : transports) {
    const MountOptions options =
        Parsed({"s", "m", "--config", "c", "--transport", word});
    EXPECT_EQ(options.transport, meaning) << word;
  }
  const std::tuple<const char*, bool, bool> sandboxes[] = {
      {"on", true, true}, {"strict", true, false}, {"off", false, true}};
  for (const auto& [word, sandbox, file_handles] : sandboxes) {
    const MountOptions options =
        Parsed({"s", "m", "--config", "c", "--sandbox", word});
    EXPECT_EQ(options.sandbox, sandbox) << word;
    EXPECT_EQ(options.file_handles, file_handles) << word;
  }
  EXPECT_TRUE(Parsed({"s", "m", "--config", "c", "--foreground"}).foreground);
  EXPECT_EQ(Parsed({"s", "m", "--config", "c", "--metrics", "h:1"}).metrics,
            "h:1");
  const MountOptions metrics =
      Parsed({"s", "m", "--config", "c", "--metrics", "unix:/s",
              "--metrics-group", "g", "--metrics-names"});
  EXPECT_EQ(metrics.metrics_group, "g");
  EXPECT_TRUE(metrics.metrics_names);
  EXPECT_TRUE(MetricsAtSocket(metrics));
}

TEST(MountOptionsTest, MountOptionsAreSplitAtCommas) {
  const MountOptions options = Parsed(
      {"-o", "ro,max_read=4096", "s", "m", "-o", ",noexec,,", "--config", "c"});
  EXPECT_EQ(options.fuse_options,
            (std::vector<std::string>{"ro", "max_read=4096", "noexec"}));
}

TEST(MountOptionsTest, OtherCommandsTakeWhatIsTheirs) {
  EXPECT_TRUE(Parsed({"--help"}).help);
  EXPECT_TRUE(Parsed({"--version"}).version);
  const MountOptions check = Parsed({"--check", "c", "--dot"});
  EXPECT_EQ(check.command, Command::kCheck);
  EXPECT_EQ(check.config, "c");
  EXPECT_TRUE(check.dot);
  const MountOptions doctor = Parsed({"--doctor", "--fix", "/src"});
  EXPECT_EQ(doctor.command, Command::kDoctor);
  EXPECT_TRUE(doctor.fix);
  EXPECT_EQ(doctor.source, "/src");
}

TEST(MountOptionsTest, Malicious_WhatCannotBeMeantIsRefusedWithTheNextStep) {
  const std::pair<std::vector<const char*>, const char*> cases[] = {
      {{}, "a directory SRC is needed"},
      {{"s", "m", "x", "--config", "c"}, "a directory SRC is needed"},
      {{"s", "m", "--survive", "yes"}, "--survive yes goes with --config"},
      {{"s", "--config", "c", "--rules", "r"}, "--rules is for mounts"},
      {{"s", "m", "--config", "c", "--visibility", "Fast"},
       "there are exact, auto, fast; did you mean 'fast'?"},
      {{"s", "m", "--config", "c", "--transport", "io_uring"},
       "'io_uring'; there are auto, uring, dev"},
      {{"s", "m", "--config", "c", "--sandbox", "no"},
       "'no'; there are on, strict, off"},
      {{"s", "m", "--config", "c", "--metrics-names"},
       "--metrics-names goes with --metrics"},
      {{"s", "m", "--config", "c", "--metrics", "h:1", "--metrics-group", "g"},
       "--metrics-group goes with --metrics unix:PATH"},
      {{"s", "m", "--config", "c", "--dot"}, "--dot goes with --check"},
      {{"s", "m", "--config", "c", "--fix"}, "--fix goes with --doctor"},
      {{"--check", "c", "s"}, "one config file and nothing else"},
      {{"--check", "c", "--config", "d"}, "one config file and nothing else"},
      {{"--doctor", "a", "b"}, "one directory at most"},
      {{"s", "m", "--config", "c", "--frobnicate"}, "see tracefs-mount --help"},
      {{"s", "m", "--confg", "c"}, "did you mean '--config'?"},
      {{"s", "m", "--conf", "c"}, "did you mean '--config'?"},
      {{"s", "m", "--config"}, "see tracefs-mount --help"},
      {{"s", "m", "--config", "c", "-o", "ro,sync"},
       "-o sync: what waits for the disk is up to the file system below"},
      {{"s", "m", "--config", "c", "-o", "dirsync"},
       "mount that one with dirsync"},
  };
  for (const auto& [words, message] : cases) {
    const Result<MountOptions> options = Parse(words);
    ASSERT_FALSE(options.ok()) << message;
    EXPECT_EQ(ExitStatus(options.status()), 2);
    EXPECT_NE(options.status().message().find(message), std::string::npos)
        << options.status().message();
  }
}

TEST(MountOptionsTest, HelpNamesEveryOption) {
  const std::string help = HelpText(MountHelp(), {.asked = true, .all = true});
  for (const char* option :
       {"--config", "--foreground", "--visibility", "--transport", "--sandbox",
        "--metrics", "-o", "--check", "--dot", "--doctor", "--fix", "--version",
        "--help"}) {
    EXPECT_NE(help.find(option), std::string::npos) << option;
  }
}

}  // namespace
}  // namespace tracefs
