#include "tracefs/command/command_line.h"

#include <boost/program_options.hpp>
#include <sstream>
#include <utility>

#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"

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
      auto* const value = po::value<std::string>()->value_name(row.value);
      if (!row.fallback.empty()) value->default_value(row.fallback);
      made.add_options()(row.name.c_str(), value, row.help.c_str());
    }
  }
  return made;
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
          "write there instead; FILE is replaced as a whole, when all "
          "is written, or not at all"};
}

CommandOption ToOption() {
  return {"to", "TIME", "only operations that began before TIME"};
}

CommandOption WaitOption() {
  return {"wait", "", "wait first until nobody writes the traces any more"};
}

CommandOption HelpOption() { return {"help,h", "", "print this and exit"}; }

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

Result<CommandLine> CommandLine::Parse(int argc, const char* const* argv,
                                       const CommandOptions& options,
                                       const std::string& words,
                                       std::string_view see_help) {
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
    po::store(po::command_line_parser(argc, argv)
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

Status CommandLine::Judge(const CommandOptions& options) const {
  for (const CommandOption& row : options) {
    const std::string name = row.long_name();
    if (!Has(name)) continue;
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
