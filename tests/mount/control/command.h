// Running the real commands from a test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace tracefs::testing {

// A child process; killed if it still runs when this goes.
class Command {
 public:
  struct Options {
    uid_t uid = 0;          // who runs it; 0: us
    std::string directory;  // where; "": here
  };
  // The first argument is a command of this build, or a path.
  explicit Command(const std::vector<std::string>& arguments)
      : Command(arguments, Options()) {}
  Command(const std::vector<std::string>& arguments, const Options& options);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Its exit status; 128 + the signal that killed it, or -1 if it does not end.
  int Wait(std::chrono::seconds patience = std::chrono::seconds(120));
  bool running();
  void Signal(int number) const;
  pid_t pid() const { return pid_; }

  // What it has written so far.
  std::string out() const;
  std::string err() const;

 private:
  pid_t pid_ = -1;
  int status_ = -1;
  bool reaped_ = false;
  std::string out_path_;
  std::string err_path_;
};

// Runs to the end.
struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};
Outcome RunCommand(const std::vector<std::string>& arguments,
                   const Command::Options& options = {});

}  // namespace tracefs::testing
