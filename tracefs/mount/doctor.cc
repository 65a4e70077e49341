// The report and the changes (doctor.h).
#include "tracefs/mount/doctor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "tracefs/base/choice.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr char kHeading[] = "# Written by tracefs-mount --doctor --fix\n";

std::string_view StateName(Finding::State state) {
  static constexpr Choice<Finding::State> kNames[] = {
      {"ok       ", Finding::State::kOk},
      {"limited  ", Finding::State::kLimited},
      {"missing  ", Finding::State::kMissing},
  };
  return WordOf(kNames, state);
}

// `label` and, indented beside it, `text` in lines of at most 79 columns.
void PrintWrapped(const char* label, const std::string& text,
                  std::ostream& out) {
  constexpr size_t kColumns = 79;
  constexpr size_t kIndent = 19;
  out << label;
  size_t column = kIndent;
  std::istringstream words(text);
  const char* space = "";
  for (std::string word; words >> word;) {
    if (*space != '\0' && column + 1 + word.size() > kColumns) {
      out << '\n' << std::string(kIndent, ' ');
      column = kIndent;
      space = "";
    }
    out << space << word;
    column += word.size() + (*space != '\0' ? 1 : 0);
    space = " ";
  }
  out << '\n';
}

// What is in the file; empty if there is none.
std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool HasLine(const std::string& text, const std::string& wanted) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == wanted) return true;
  }
  return false;
}

// A setting takes its value in one write.
Status SetNow(const std::string& path, const std::string& value) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return Status::System(errno, path);
  return WriteAll(fd.get(), AsBytes(value), path);
}

// Replaced as a whole, so that no boot finds half of it.
Status SetForBoot(const std::string& path, const std::string& line) {
  std::string text = Contents(path);
  if (text.empty()) text = kHeading;
  if (text.back() != '\n') text += '\n';
  text += line + '\n';
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Status::System(error.value(), folder.string());
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  const UniqueFd fd(::open(fresh.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           0644));
  if (!fd) return Status::System(errno, fresh);
  Status status = WriteAll(fd.get(), AsBytes(text), fresh);
  if (status.ok() && (::fchmod(fd.get(), 0644) != 0 || ::fsync(fd.get()) != 0 ||
                      ::rename(fresh.c_str(), path.c_str()) != 0)) {
    status = Status::System(errno, path);
  }
  if (!status.ok()) ::unlink(fresh.c_str());
  return status;
}

bool IsInPlace(const Remedy& remedy, const std::string& path) {
  return HasLine(Contents(path), remedy.line);
}

}  // namespace

bool Report(const std::vector<Finding>& findings, std::ostream& out) {
  bool possible = true;
  for (const Finding& f : findings) {
    out << StateName(f.state) << f.subject << ": " << f.found << '\n';
    if (f.state == Finding::State::kOk) continue;
    PrintWrapped("           so      ", f.consequence, out);
    PrintWrapped("           change  ",
                 f.remedies.empty() ? f.advice : f.advice + " (--fix does it)",
                 out);
    possible &= f.state != Finding::State::kMissing;
  }
  return possible;
}

Status Fix(const Machine& machine, const std::vector<Finding>& findings,
           std::ostream& out) {
  bool any = false;
  for (const Finding& f : findings) {
    for (const Remedy& remedy : f.remedies) {
      any = true;
      const std::string path = machine.root + remedy.path;
      if (IsInPlace(remedy, path)) {
        out << "unchanged  " << remedy.path << ": has \"" << remedy.line
            << "\"\n";
        continue;
      }
      const bool now = remedy.kind == Remedy::Kind::kNow;
      if (Status s =
              now ? SetNow(path, remedy.line) : SetForBoot(path, remedy.line);
          !s.ok()) {
        return s;
      }
      out << (now ? "set        " : "wrote      ") << remedy.path << ": \""
          << remedy.line << "\"\n";
    }
  }
  if (!any) out << "nothing that --fix could change\n";
  return Status::Ok();
}

Status RunDoctor(const std::string& source, bool fix, std::ostream& out) {
  const Machine machine = Machine::This();
  std::vector<Finding> findings = Examine(machine, source);
  if (fix) {
    if (!machine.is_root) {
      return Status::System(EPERM, "--doctor --fix: run it as root");
    }
    if (Status s = Fix(machine, findings, out); !s.ok()) {
      return s.Prefixed("--doctor --fix");
    }
    out << '\n';
    findings = Examine(machine, source);
  }
  if (!Report(findings, out)) {
    return Status::System(EOPNOTSUPP,
                          "what is missing above must be there for a mount");
  }
  return Status::Ok();
}

}  // namespace tracefs
