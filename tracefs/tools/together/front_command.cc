#include "tracefs/tools/together/front_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "tracefs/base/spelling.h"
#include "tracefs/command/command_line.h"
#include "tracefs/command/front.h"

namespace tracefs {
namespace {

struct FrontRow {
  std::string_view word;  // "run": tracefs-run
  std::string_view help;
};

struct FrontGroup {
  std::string_view heading;
  std::span<const FrontRow> rows;
};

constexpr FrontRow kRecordRows[] = {
    {"run", "Runs a command and records what it does"},
    {"mount", "Records what happens in a directory"},
    {"ctl", "Steers a mount: list, explain, stats, unmount, …"},
    {"top", "Shows a mount live; of a trace, the same screens"},
    {"import", "Makes traces of the logs of strace and fio"},
};
constexpr FrontRow kAskRows[] = {
    {"report", "Answers a question about a trace, or makes a page of it"},
    {"dump", "Lists, filters, counts and exports operations"},
    {"deps", "Says what a file was made from, and what from it"},
    {"replay", "Repeats a workload, or takes it back"},
};
constexpr FrontRow kKeepRows[] = {
    {"verify", "Says whether traces are whole and unchanged"},
    {"anon", "Makes copies of traces without names"},
    {"keygen", "Makes keys"},
    {"recv", "Receives the traces of other hosts"},
};
constexpr FrontGroup kGroups[] = {{"To record:", kRecordRows},
                                  {"To ask:", kAskRows},
                                  {"To keep and share:", kKeepRows}};

// What `tracefs help` knows beside commands, and the manual page that has it.
struct Topic {
  std::string_view word;
  std::string_view page;
  std::string_view section;
};
constexpr Topic kTopics[] = {
    {"filters", "tracefs-filter", "7"}, {"config", "tracefs.conf", "5"},
    {"format", "tracefs-trace", "5"},   {"messages", "tracefs-messages", "7"},
    {"tour", "tracefs", "7"},
};

std::vector<std::string_view> CommandWords() {
  std::vector<std::string_view> words;
  for (const FrontGroup& group : kGroups) {
    for (const FrontRow& row : group.rows) words.push_back(row.word);
  }
  return words;
}

bool IsCommand(std::string_view word) {
  return std::ranges::count(CommandWords(), word) > 0;
}

std::string NameOf(std::string_view word) {
  return "tracefs-" + std::string(word);
}

// "tracefs top X …" is "tracefs-ctl X top …" of a mount and "tracefs-dump
// --browse X …" of a trace.
FrontAnswer Top(std::span<const std::string> rest, const LookAtPath& look) {
  std::vector<std::string> words;
  const auto is_plain = [](const std::string& word) {
    return !word.starts_with('-');
  };
  // A word may also be the value of an option.
  auto first = std::ranges::find_if(rest, [&](const std::string& word) {
    return is_plain(word) && look(word) != PathKind::kMissing;
  });
  if (first == rest.end()) first = std::ranges::find_if(rest, is_plain);
  if (first != rest.end() && look(*first) == PathKind::kFile) {
    words = {"tracefs-dump", "--browse"};
    words.insert(words.end(), rest.begin(), rest.end());
    return {.words = std::move(words)};
  }
  words = {"tracefs-ctl"};
  if (first != rest.end()) words.push_back(*first);
  words.emplace_back("top");
  for (auto word = rest.begin(); word != rest.end(); ++word) {
    if (word != first) words.push_back(*word);
  }
  return {.words = std::move(words)};
}

Result<FrontAnswer> Help(std::span<const std::string> rest) {
  if (rest.empty()) return FrontAnswer{.text = FrontHelp()};
  const std::string& word = rest.front();
  if (word == "top") return FrontAnswer{.words = {"tracefs-ctl", "--help"}};
  if (IsCommand(word)) {
    return FrontAnswer{.words = {NameOf(word), "--help"}};
  }
  std::vector<std::string_view> known = CommandWords();
  for (const Topic& topic : kTopics) {
    if (topic.word == word) {
      return FrontAnswer{.words = {"man", std::string(topic.section),
                                   std::string(topic.page)}};
    }
    known.push_back(topic.word);
  }
  return Status::Invalid("help " + word +
                         ": there is no such command or topic" +
                         DidYouMean(word, known) + "; tracefs help lists them");
}

// Runs the command of that name: one that lies next to this program, else one
// of $PATH. Returns only if there is none.
Status Execute(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));  // execv takes these
  }
  arguments.push_back(nullptr);
  std::array<char, PATH_MAX> self;
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  if (length > 0 && words.front() != "man") {
    std::string beside(self.data(), static_cast<size_t>(length));
    beside.resize(beside.rfind('/') + 1);
    ::execv((beside + words.front()).c_str(), arguments.data());
  }
  ::execvp(arguments.front(), arguments.data());
  const int error = errno;
  return Status::SystemSaid(
      error, words.front() + ": " + std::strerror(error) + "; next: install " +
                 (words.front() == "man" ? "man-db" : "the package with it"));
}

PathKind Look(const std::string& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0) return PathKind::kMissing;
  return S_ISDIR(found.st_mode) ? PathKind::kFolder : PathKind::kFile;
}

}  // namespace

std::string FrontHelp() {
  std::string text =
      "Usage: tracefs COMMAND …, or tracefs TRACE… to sum up traces\n\n";
  for (const FrontGroup& group : kGroups) {
    (text += group.heading) += '\n';
    for (const FrontRow& row : group.rows) {
      ((text += "  ") += row.word).append(10 - row.word.size(), ' ');
      (text += row.help) += '\n';
    }
  }
  text += OptionsText({HelpOption(), VersionOption()});
  text +=
      "tracefs help COMMAND shows its options; tracefs-COMMAND is the same "
      "command.\nManual pages: tracefs help ";
  for (const Topic& topic : kTopics) {
    (text += &topic == kTopics ? "" : "|") += topic.word;
  }
  return text +=
         "\nTry: tracefs run -o first.trace -- ls -l; tracefs "
         "first.trace\n";
}

Result<FrontAnswer> AnswerOfFront(std::span<const std::string> words,
                                  const LookAtPath& look) {
  if (words.empty()) return FrontAnswer{.text = FrontHelp()};
  const std::string& first = words.front();
  const std::span<const std::string> rest = words.subspan(1);
  if (first == "help") return Help(rest);
  if (first == "--help" || first == "--help=all" || first == "-h") {
    return Help({});
  }
  if (first == "--help=json") {
    return FrontAnswer{.text = OptionsAsJson({HelpOption(), VersionOption()})};
  }
  if (first == "--version") {
    return FrontAnswer{.text = VersionLine("tracefs")};
  }
  if (first == "top") return Top(rest, look);
  FrontAnswer answer;
  if (IsCommand(first)) {
    answer.words.push_back(NameOf(first));
    answer.words.insert(answer.words.end(), rest.begin(), rest.end());
    return answer;
  }
  if (!first.starts_with('-') && look(first) != PathKind::kMissing) {
    answer.words = {"tracefs-report", "summary"};
    answer.words.insert(answer.words.end(), words.begin(), words.end());
    return answer;
  }
  return Status::Invalid(first + ": there is no such command or trace" +
                         DidYouMean(first, CommandWords()) +
                         "; tracefs help lists the commands");
}

int FrontMain(std::span<const CalledAs> here, int argc, char** argv) {
  const std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  const Result<FrontAnswer> answer = AnswerOfFront(given, &Look);
  if (!answer.ok()) return Finish("tracefs", answer.status());
  if (answer->words.empty()) return FinishWith("tracefs", answer->text);
  for (const CalledAs& command : here) {
    if (command.name != answer->words.front()) continue;
    std::vector<std::string> words = answer->words;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    return command.main(static_cast<int>(words.size()), arguments.data());
  }
  return Finish("tracefs", Execute(answer->words));
}

}  // namespace tracefs
