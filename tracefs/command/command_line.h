// Command lines of the commands, read alike by all of them.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

// The options that a command was given.
class CommandLine {
 public:
  // `words`: the name under which Texts() has the arguments that are not
  // options; empty: there may be none. No option may be abbreviated. kInvalid:
  // what is wrong, what was probably meant, then `see_help`.
  static Result<CommandLine> Parse(
      int argc, const char* const* argv,
      boost::program_options::options_description options,
      const std::string& words, std::string_view see_help);

  bool Has(const std::string& name) const { return given_.count(name) != 0; }
  // The value of an option of that type; of Text() and Texts() nothing where it
  // was not given.
  template <typename T>
  const T& As(const std::string& name) const {
    return given_[name].as<T>();
  }
  std::string Text(const std::string& name) const;
  std::vector<std::string> Texts(const std::string& name) const;

 private:
  boost::program_options::variables_map given_;
};

// The words between the commas of each argument, empty ones left out.
std::vector<std::string> SplitAtCommas(
    const std::vector<std::string>& arguments);

}  // namespace tracefs
