#include "tracefs/command/command_line.h"

#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"

namespace tracefs {

namespace po = boost::program_options;

// Options as they are written in full: "--help".
constexpr int kLong = po::command_line_style::allow_long;

Result<CommandLine> CommandLine::Parse(int argc, const char* const* argv,
                                       po::options_description options,
                                       const std::string& words,
                                       std::string_view see_help) {
  po::positional_options_description positional;
  if (!words.empty()) {
    options.add_options()(words.c_str(), po::value<std::vector<std::string>>());
    positional.add(words.c_str(), -1);
  }
  CommandLine line;
  try {
    // No guessing: an abbreviation that works today may be ambiguous tomorrow.
    namespace style = po::command_line_style;
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional(positional)
                  .style(style::unix_style & ~style::allow_guessing)
                  .run(),
              line.given_);
    po::notify(line.given_);
  } catch (const po::unknown_option& error) {
    std::vector<std::string> known;
    for (const auto& option : options.options()) {
      if (option->long_name() != words) {
        known.push_back(option->canonical_display_name(kLong));
      }
    }
    return Status::Invalid(
        error.what() +
        DidYouMean(error.get_option_name(),
                   std::vector<std::string_view>(known.begin(), known.end())) +
        std::string(see_help));
  } catch (const po::error& error) {
    return Status::Invalid(error.what() + std::string(see_help));
  }
  return line;
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
  return Has(name) ? As<std::string>(name) : std::string();
}

std::vector<std::string> CommandLine::Texts(const std::string& name) const {
  return Has(name) ? As<std::vector<std::string>>(name)
                   : std::vector<std::string>();
}

}  // namespace tracefs
