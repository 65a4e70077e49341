#include "tracefs/tools/helper/helper_line.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tracefs {
namespace {

// Options of ours, and the option of tracefs-mount that they are.
struct OwnOption {
  std::string_view name;
  std::string_view option;
  bool value;
};
constexpr std::array kOwn = {
    OwnOption{"rules", "--rules", true},
    OwnOption{"visibility", "--visibility", true},
    OwnOption{"survive", "--survive", true},
    OwnOption{"handles", "--handles", true},
    OwnOption{"transport", "--transport", true},
    OwnOption{"queue_threads", "--queue-threads", true},
    OwnOption{"sandbox", "--sandbox", true},
    OwnOption{"log", "--log", true},
    OwnOption{"metrics", "--metrics", true},
    OwnOption{"metrics_group", "--metrics-group", true},
    OwnOption{"metrics_names", "--metrics-names", false},
};

// Meant for mount(8) itself, or what any mount of ours is anyway. `group` and
// `owner` have become nosuid and nodev on the way.
constexpr std::array<std::string_view, 26> kForOthers = {
    "defaults",   "auto",          "noauto", "user",     "nouser",
    "users",      "nousers",       "owner",  "noowner",  "group",
    "nogroup",    "_netdev",       "async",  "loud",     "silent",
    "relatime",   "mand",          "nomand", "iversion", "noiversion",
    "nolazytime", "nostrictatime", "suid",   "dev",      "exec",
    "symfollow"};
constexpr std::array<std::string_view, 5> kValuesForOthers = {
    "comment=", "uhelper=", "helper=", "user=", "x-"};

// Bits that a remount can change on the mount alone.
constexpr std::array<std::string_view, 4> kMountFlags = {
    "nosuid", "nodev", "noexec", "nosymfollow"};

// As the kernel shows them of a mount that is there, and as a remount has them.
constexpr std::array<std::string_view, 3> kShown = {
    "user_id=", "group_id=", "rootmode="};

template <typename Words>
bool Has(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

template <typename Words>
bool HasPrefix(const Words& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(),
                     [&](auto prefix) { return word.starts_with(prefix); });
}

Status TakeOwn(const std::string& option, MountHelperLine* line, bool* taken) {
  const size_t equals = option.find('=');
  const std::string name = option.substr(0, equals);
  const std::string value =
      equals == option.npos ? "" : option.substr(equals + 1);
  *taken = true;
  if (name == "config") {
    if (value.empty()) {
      return Status::Invalid("config= needs the path of a config file");
    }
    line->config = value;
    return Status::Ok();
  }
  for (const OwnOption& own : kOwn) {
    if (own.name != name) continue;
    if (own.value == value.empty()) {
      return Status::Invalid("the option " + name +
                             (own.value ? " needs a value" : " has no value"));
    }
    if (name == "visibility") line->visibility = value;
    // mount(8) puts what the command line says behind what fstab has.
    const auto before =
        std::find(line->own.begin(), line->own.end(), own.option);
    if (before != line->own.end()) {
      line->own.erase(before, before + (own.value ? 2 : 1));
    }
    line->own.emplace_back(own.option);
    if (own.value) line->own.push_back(value);
    return Status::Ok();
  }
  *taken = false;
  return Status::Ok();
}

Status TakeOption(const std::string& option, MountHelperLine* line) {
  bool taken = false;
  if (Status s = TakeOwn(option, line, &taken); !s.ok() || taken) return s;
  if (option == "ro" || option == "rw") {
    line->read_only = option == "ro";
  } else if (option == "nofail") {
    line->nofail = true;
  } else if (option == "remount") {
    line->remount = true;
  } else if (option == "lazytime") {
    return Status::Invalid(
        "lazytime: times are kept by the file system below; mount that one "
        "with lazytime");
  } else if (option == "bind" || option == "rbind" || option == "move") {
    return Status::Invalid(option + ": use mount --" + option);
  } else if (Has(kForOthers, option) || HasPrefix(kValuesForOthers, option) ||
             option.starts_with("X-")) {
    // Done already, or nothing to do.
  } else if (HasPrefix(kShown, option)) {
    line->shown = option;
    line->complete |= option.starts_with("user_id=");
  } else if (option == "fd" || option.starts_with("fd=") ||
             option.starts_with("fsname=") || option.starts_with("subtype=")) {
    return Status::Invalid("the option " + option + " is not for others");
  } else {
    if (Has(kMountFlags, option)) line->flags.push_back(option);
    line->for_fuse.push_back(option);
  }
  return Status::Ok();
}

// Words that are options of one letter; false if `word` is none of them.
template <typename Flag>
bool TakeLetters(std::string_view word, const Flag& flag) {
  if (word.size() < 2 || word[0] != '-' || word[1] == '-') return false;
  return std::all_of(word.begin() + 1, word.end(), flag);
}

Status InNamespace(std::string_view command) {
  return Status::Invalid(
      "-N: enter the namespace with nsenter --mount and run " +
      std::string(command) + " there");
}

Status Unknown(std::string_view word) {
  return Status::Invalid("unknown option " + std::string(word));
}

}  // namespace

std::vector<std::string> SplitOptions(const std::string& list) {
  std::vector<std::string> options;
  std::string option;
  bool quoted = false;
  for (const char c : list) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      if (!option.empty()) options.push_back(std::move(option));
      option.clear();
    } else {
      option += c;
    }
  }
  if (!option.empty()) options.push_back(std::move(option));
  return options;
}

Result<MountHelperLine> ParseMountHelper(int argc, const char* const* argv) {
  MountHelperLine line;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-h" || word == "--help") {
      line.help.asked = true;
    } else if (word == "-V" || word == "--version") {
      line.version = true;
    } else if (word == "-o" || word == "-t" || word == "-N") {
      if (++i == argc) return Status::Invalid(word + " needs a value");
      if (word == "-N") return InNamespace("mount");
      if (word == "-t") continue;
      for (const std::string& option : SplitOptions(argv[i])) {
        if (Status s = TakeOption(option, &line); !s.ok()) return s;
      }
    } else if (TakeLetters(word, [&](char letter) {
                 line.fake |= letter == 'f';
                 return std::string_view("sfnvrw").find(letter) !=
                        std::string_view::npos;
               })) {
      if (word.find('r') != word.npos) line.read_only = true;
    } else if (word.size() > 1 && word[0] == '-') {
      return Unknown(word);
    } else {
      words.push_back(word);
    }
  }
  if (line.help || line.version) return line;
  if (words.size() != 2) {
    return Status::Invalid("SRC and MNT are needed; see mount.fuse.tracefs(8)");
  }
  line.source = words[0];
  line.mount_point = words[1];
  if (line.read_only == true && !line.remount) line.for_fuse.emplace_back("ro");
  if (!line.shown.empty() && !line.remount) {
    return Status::Invalid("the option " + line.shown + " is not for others");
  }
  return line;
}

Result<UmountHelperLine> ParseUmountHelper(int argc, const char* const* argv) {
  UmountHelperLine line;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-h" || word == "--help") {
      line.help.asked = true;
    } else if (word == "-V" || word == "--version") {
      line.version = true;
    } else if (word == "-t" || word == "-N") {
      if (++i == argc) return Status::Invalid(word + " needs a value");
      if (word == "-N") return InNamespace("umount");
    } else if (TakeLetters(word, [&](char letter) {
                 line.lazy |= letter == 'l';
                 line.force |= letter == 'f';
                 line.verbose |= letter == 'v';
                 line.read_only_if_busy |= letter == 'r';
                 return std::string_view("nlfvrcidR").find(letter) !=
                        std::string_view::npos;
               })) {
    } else if (word.size() > 1 && word[0] == '-') {
      return Unknown(word);
    } else {
      words.push_back(word);
    }
  }
  if (line.help || line.version) return line;
  if (words.size() != 1) return Status::Invalid("one mount point is needed");
  line.mount_point = words[0];
  return line;
}

HelpPage MountHelperHelp() {
  return {
      .command = "mount.fuse.tracefs",
      .begin =
          "Usage: mount.fuse.tracefs SRC MNT [-sfnv] [-o OPTION,…]\n"
          "What mount(8) calls for `mount -t fuse.tracefs SRC MNT -o "
          "config=FILE,…`.\nWithout config= it records to a dated trace, as "
          "tracefs-mount does.\nSee mount.fuse.tracefs(8).\n"};
}

HelpPage UmountHelperHelp() {
  return {.command = "umount.fuse.tracefs",
          .begin =
              "Usage: umount.fuse.tracefs MNT [-nlfvr]\n"
              "What umount(8) calls for a mount of tracefs. Returns when its "
              "traces "
              "are\ncomplete. See umount.fuse.tracefs(8).\n"};
}

}  // namespace tracefs
