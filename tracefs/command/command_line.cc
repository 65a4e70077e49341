#include "tracefs/command/command_line.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdlib>
#include <iostream>
#include <list>
#include <sstream>

#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

namespace po = boost::program_options;

// Options as they are written in full: "--help".
constexpr int kLongStyle = po::command_line_style::allow_long;

po::options_description DescriptionOf(const std::string& heading,
                                      const CommandOptions& rows) {
  po::options_description made(heading);
  for (const CommandOption& row : rows) {
    if (row.value.empty()) {
      made.add_options()(row.name.c_str(), row.help.c_str());
    } else if (row.repeated) {
      made.add_options()(
          row.name.c_str(),
          po::value<std::vector<std::string>>()->value_name(row.value),
          row.help.c_str());
    } else {
      auto* const value = po::value<std::string>();
      if (!row.fallback.empty()) value->default_value(row.fallback);
      value->value_name(row.implied.empty() ? row.value
                                            : "[=" + row.value + "]");
      made.add_options()(row.name.c_str(), value, row.help.c_str());
    }
  }
  return made;
}

std::vector<std::string_view> Words(const CommandOption& row) {
  std::vector<std::string_view> words;
  for (std::string_view rest = row.words; !rest.empty();) {
    const size_t end = std::min(rest.find_first_of(" ,"), rest.size());
    if (end > 0) words.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

}  // namespace

CommandOption KeyOption() {
  return {"key", "FILE",
          "keys for encrypted traces; also env:NAME, keyring:NAME; may "
          "be given several times",
          /*repeated=*/true};
}

CommandOption OutputOption() {
  return {"output,o", "FILE",
          "write there; FILE is replaced whole, or not at all"};
}

CommandOption ToOption() {
  return {"to", "TIME", "only operations that began before TIME"};
}

CommandOption WaitOption() {
  return {"wait", "", "wait first until nobody writes the traces any more"};
}

CommandOption HelpOption() {
  return {"help,h", "", "print this and exit; --help=all: all there is"};
}

CommandOption VersionOption() {
  return {"version", "", "print the version and exit"};
}

std::string OptionsText(const CommandOptions& rows,
                        const std::vector<OptionGroup>& more) {
  po::options_description all = DescriptionOf("Options", rows);
  for (const OptionGroup& group : more) {
    all.add(DescriptionOf(group.heading, group.rows));
  }
  std::ostringstream text;
  text << all;
  return text.str();
}

std::string OptionsAsJson(const CommandOptions& rows) {
  std::string text;
  JsonWriter json(&text);
  json.OpenList("options");
  for (const CommandOption& row : rows) {
    const size_t comma = row.name.find(',');
    json.Open();
    json.Put("name", row.long_name());
    if (comma != row.name.npos) json.Put("letter", row.name.substr(comma + 1));
    json.PutIf("value", row.value);
    json.Put("help", row.help);
    json.PutIf("default", row.fallback);
    if (row.repeated) json.PutTrue("repeated");
    if (row.open) json.PutTrue("open");
    if (!row.implied.empty()) json.PutTrue("optional");
    json.OpenList("words");
    for (const std::string_view word : Words(row)) json.Add(word);
    json.CloseList();
    json.Close();
  }
  json.CloseList();
  json.End();
  return text + '\n';
}

Result<CommandLine> CommandLine::Parse(int argc, const char* const* argv,
                                       const CommandOptions& options,
                                       const std::string& words,
                                       std::string_view see_help) {
  if (argc == 2 && std::string_view(argv[1]) == "--help=json") {
    std::cout << OptionsAsJson(options) << std::flush;
    std::exit(EXIT_SUCCESS);
  }
  std::vector<const char*> words_given(argv, argv + argc);
  bool all_help = false;
  std::list<std::string> implied;
  for (const char*& word : words_given) {
    if (std::string_view(word) == "--") break;
    // The library would take the next word for the value.
    const auto row = std::ranges::find_if(options, [&](const auto& option) {
      return !option.implied.empty() && word == "--" + option.long_name();
    });
    if (row != options.end()) {
      word =
          implied.emplace_back(std::string(word) + '=' + row->implied).c_str();
    }
    if (std::string_view(word) != "--help=all") continue;
    all_help = true;
    word = "--help";
  }
  po::options_description known = DescriptionOf({}, options);
  po::positional_options_description positional;
  if (!words.empty()) {
    known.add_options()(words.c_str(), po::value<std::vector<std::string>>());
    positional.add(words.c_str(), -1);
  }
  po::variables_map given;
  try {
    // No guessing: an abbreviation that works today may be ambiguous tomorrow.
    namespace style = po::command_line_style;
    po::store(po::command_line_parser(argc, words_given.data())
                  .options(known)
                  .positional(positional)
                  .style(style::unix_style & ~style::allow_guessing)
                  .run(),
              given);
    po::notify(given);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> names;
    for (const auto& option : known.options()) {
      if (option->long_name() != words) {
        names.push_back(option->canonical_display_name(kLongStyle));
      }
    }
    return Status::Invalid(
        error.what() +
        DidYouMean(error.get_option_name(),
                   std::vector<std::string_view>(names.begin(), names.end())) +
        std::string(see_help));
  } catch (const po::error& error) {
    return Status::Invalid(error.what() + std::string(see_help));
  }
  CommandLine line;
  line.all_help_ = all_help;
  for (const auto& [name, value] : given) {
    if (value.defaulted()) {
      line.fallbacks_[name] = value.as<std::string>();
      continue;
    }
    std::vector<std::string>& texts = line.given_[name];
    if (const auto* const one = boost::any_cast<std::string>(&value.value())) {
      texts = {*one};
    } else if (const auto* const several =
                   boost::any_cast<std::vector<std::string>>(&value.value())) {
      texts = *several;
    }
  }
  if (line.Has("help") || line.Has("version")) return line;
  if (Status s = line.Judge(options); !s.ok()) return s;
  return line;
}

// As of a variable of a script that was never set: it would count as if the
// option had not been given.
Status CommandLine::JudgeEmpty(const CommandOption& row) const {
  // Numbers and words say themselves that they are none; other things may be
  // empty.
  constexpr std::string_view kPlaces[] = {"FILE",     "DIR",     "FOLDER",
                                          "TRACE",    "POLICY",  "MNT",
                                          "ORIGINAL", "ADDRESS", "OLD"};
  if (std::ranges::find(kPlaces, row.value) == std::end(kPlaces)) return {};
  for (const std::string& text : Texts(row.long_name())) {
    if (text.empty()) {
      return Status::Invalid("--" + row.long_name() + ": its " +
                             std::string(row.value) + " is empty");
    }
  }
  return {};
}

Status CommandLine::JudgeWords(const CommandOption& row) const {
  if (row.words.empty() || row.open) return {};
  const std::vector<std::string_view> known = Words(row);
  const std::string name = row.long_name();
  for (const std::string& word : Texts(name)) {
    if (std::ranges::find(known, word) != known.end()) continue;
    return Status::Invalid("--" + name + ": there is no " + Quoted(word) +
                           "; there are " + JoinWords(known, ", ") +
                           DidYouMean(word, known));
  }
  return {};
}

Status CommandLine::TakeChecked(Parser parse, std::string_view kind,
                                const std::string& name, uint64_t min,
                                uint64_t max, uint64_t* value) const {
  if (!Has(name)) return {};
  const std::optional<uint64_t> number = parse(Text(name));
  if (!number || *number < min || *number > max) {
    return Status::Invalid("--" + name + ": " + Quoted(Text(name)) + " is no " +
                           std::string(kind) + " from " + std::to_string(min) +
                           (max == UINT64_MAX ? " on" : " to ") +
                           (max == UINT64_MAX ? "" : std::to_string(max)));
  }
  *value = *number;
  return {};
}

Status CommandLine::TakeRows(const std::string& name,
                             std::optional<size_t>* rows) const {
  if (!Has(name)) return {};
  const std::string text = Text(name);
  const auto number = text == "all" ? 0 : ParseUnsigned(text);
  if (!number || (*number == 0 && text != "all")) {
    return Status::Invalid(
        "--" + name + " needs a number from 1 on, or all, not " + Quoted(text));
  }
  *rows = static_cast<size_t>(*number);
  return {};
}

Status CommandLine::TakeTime(const std::string& name, bool utc,
                             std::optional<TimeSpec>* time) const {
  if (!Has(name)) return {};
  auto read = ParseTimeSpec("--" + name, Text(name), utc);
  if (!read.ok()) return read.status();
  *time = *read;
  return {};
}

Status CommandLine::Judge(const CommandOptions& options) const {
  for (const CommandOption& row : options) {
    const std::string name = row.long_name();
    if (!Has(name)) continue;
    if (Status s = JudgeEmpty(row); !s.ok()) return s;
    if (Status s = JudgeWords(row); !s.ok()) return s;
    for (std::string_view rest = row.excludes; !rest.empty();) {
      const std::string other(TakeUpTo(rest, ' '));
      if (Has(other)) {
        return Status::Invalid("--" + name + " and --" + other +
                               " exclude each other");
      }
    }
    bool met = row.needs.empty();
    std::string wanted;
    for (std::string_view rest = row.needs; !rest.empty();) {
      const std::string other(TakeUpTo(rest, ' '));
      met |= Has(other);
      wanted += (wanted.empty() ? "--"
                 : rest.empty() ? " or --"
                                : ", --") +
                other;
    }
    if (!met) return Status::Invalid("--" + name + " needs " + wanted);
  }
  return {};
}

std::vector<std::string> SplitAtCommas(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (std::string_view argument : arguments) {
    while (!argument.empty()) {
      const std::string_view word = TakeUpTo(argument, ',');
      if (!word.empty()) words.emplace_back(word);
    }
  }
  return words;
}

std::string CommandLine::Text(const std::string& name) const {
  if (const auto found = given_.find(name); found != given_.end()) {
    return found->second.empty() ? std::string() : found->second.front();
  }
  const auto fallback = fallbacks_.find(name);
  return fallback == fallbacks_.end() ? std::string() : fallback->second;
}

std::vector<std::string> CommandLine::Texts(const std::string& name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace tracefs
