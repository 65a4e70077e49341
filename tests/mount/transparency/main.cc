// tracefs_transparency: the transparency suite on any mount that is already
// there. (The same scenarios on tracefs's own mounts: transparency_test.cc.)
//
// Exit status: 0 no differences, 1 differences, 2 wrong usage, 3 not root.
#include <getopt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/mount/transparency/runner.h"

namespace {

constexpr char kUsage[] =
    "usage: tracefs_transparency --backing DIR --mount DIR [option…]\n"
    "  --backing DIR     a directory\n"
    "  --mount DIR       where the same directory is seen through the mount\n"
    "  --user UID        only as this user: 0, 65534, 61001 or 165536, which\n"
    "                    is root of a user namespace\n"
    "  --filter TEXT     only scenarios whose name contains TEXT\n"
    "  --no-deviations   expect none at all, as of a bind mount\n"
    "  --overlay         DIR is an overlay, which has some deviations itself\n"
    "  --keep            leave the scenarios' directories behind\n"
    "  --list            names only\n";

}  // namespace

int main(int argc, char** argv) {
  using namespace tracefs::transparency;
  static const option kOptions[] = {
      {"backing", required_argument, nullptr, 'b'},
      {"mount", required_argument, nullptr, 'm'},
      {"user", required_argument, nullptr, 'u'},
      {"filter", required_argument, nullptr, 'f'},
      {"no-deviations", no_argument, nullptr, 'n'},
      {"overlay", no_argument, nullptr, 'o'},
      {"keep", no_argument, nullptr, 'k'},
      {"list", no_argument, nullptr, 'l'},
      {"help", no_argument, nullptr, 'h'},
      {nullptr, 0, nullptr, 0}};
  RunnerOptions options;
  bool list = false;
  for (int c; (c = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (c) {
      case 'b':
        options.backing = optarg;
        break;
      case 'm':
        options.mount = optarg;
        break;
      case 'u': {
        char* end;
        options.user = static_cast<uid_t>(std::strtoul(optarg, &end, 10));
        if (*optarg == '\0' || *end != '\0') {
          std::fprintf(stderr, "--user %s: not a number\n", optarg);
          return 2;
        }
        break;
      }
      case 'f':
        options.filter = optarg;
        break;
      case 'n':
        options.expect_deviations = false;
        break;
      case 'o':
        options.expect_all_deviations = false;
        break;
      case 'k':
        options.keep = true;
        break;
      case 'l':
        list = true;
        break;
      case 'h':
        std::fputs(kUsage, stdout);
        return 0;
      default:
        std::fputs(kUsage, stderr);
        return 2;
    }
  }
  if (list) {
    for (const Scenario* scenario : AllScenarios()) std::puts(scenario->name);
    return 0;
  }
  if (options.backing.empty() || options.mount.empty() || optind != argc) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (::geteuid() != 0) {
    std::fputs("tracefs_transparency: needs root: it becomes other users\n",
               stderr);
    return 3;
  }
  const Report report = RunTransparency(options);
  for (const Difference& difference : report.differences) {
    std::printf("%s as %s:\n%s", difference.scenario.c_str(),
                difference.user.c_str(), difference.text.c_str());
  }
  std::printf(
      "%zu scenarios, %d runs, %d documented deviations, "
      "%zu differences\n",
      AllScenarios().size(), report.runs, report.deviations,
      report.differences.size());
  return report.differences.empty() ? 0 : 1;
}
