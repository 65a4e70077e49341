// tracefs-mount --doctor: what this machine offers a mount, what is lost
// without the rest, and what to change; --fix makes the changes, now and for
// the next boot.
//
// Nothing is mounted for it. What cannot be known without mounting is inferred
// from the kernel's version, and the report says so.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

// A change of the machine: one line in one file.
struct Remedy {
  enum class Kind {
    kNow,       // a file of /sys or /proc that takes a value
    kNextBoot,  // a configuration file that holds a line
  };
  Kind kind = Kind::kNow;
  std::string path;
  std::string line;
};

struct Finding {
  enum class State { kOk, kLimited, kMissing };
  State state = State::kOk;
  std::string subject;
  std::string found;
  // Unless kOk: what is lost, and what to do about it.
  std::string consequence;
  std::string advice;
  std::vector<Remedy> remedies;  // what --fix does of that
};

// What the checks examine. A test substitutes another machine.
struct Machine {
  // Goes before every path.
  std::string root;
  std::string kernel_release;
  uint64_t capabilities = 0;  // effective
  bool is_root = false;
  int libfuse_version = 0;      // 318 for 3.18.3
  std::string libfuse_package;  // "3.18.3"
  bool libfuse_has_uring = false;
  uint64_t fd_limit = 0;  // hard RLIMIT_NOFILE
  // "libnats 3.4.1", "librdkafka 2.0.2"; empty: built without
  std::string nats_library;
  std::string kafka_library;

  static Machine This();

  // Whether there is such a file.
  bool Has(const std::string& path) const;
};

// All checks, in the order of a report. `source`: the directory to be traced;
// without it what depends on that is left out.
std::vector<Finding> Examine(const Machine& machine, const std::string& source);

// Those of them that are about the installation.
std::vector<Finding> ExamineInstallation(const Machine& machine);

// Writes a report. Returns true if a mount is possible.
bool Report(const std::vector<Finding>& findings, std::ostream& out);

// Makes the changes of all findings that are not in place yet, and says of
// each file what was done to it. A file that is there keeps its other lines.
// The first error ends it; what was done stays done.
Status Fix(const Machine& machine, const std::vector<Finding>& findings,
           std::ostream& out);

// The command: examines and reports; with `fix` changes, examines again and
// reports. kSystem if --fix is not allowed to, or if no mount is possible.
Status RunDoctor(const std::string& source, bool fix, std::ostream& out);

}  // namespace tracefs
