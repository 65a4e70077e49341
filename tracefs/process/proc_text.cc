// proc_pid_cgroup(5), proc_pid_stat(5), proc_pid_status(5).
#include "tracefs/process/proc_text.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>

#include "tracefs/base/file_io.h"
#include "tracefs/base/text.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

std::optional<std::string> ReadProcText(int proc, uint32_t pid,
                                        const char* name, size_t most) {
  const std::string path = std::to_string(pid) + '/' + name;
  const UniqueFd fd(::openat(proc, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  Result<std::string> text = ReadText(fd.get(), most, name);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

std::optional<std::string_view> LineOf(std::string_view text,
                                       std::string_view key) {
  const size_t at = text.find(key);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find('\n'));
}

std::optional<std::string> CgroupOf(std::string_view text) {
  std::optional<std::string> unified;
  std::optional<std::string> other;
  while (!text.empty()) {
    const std::string_view line = TakeUpTo(text, '\n');
    // "4:memory:/path", "0::/path"
    const size_t first = line.find(':');
    const size_t second =
        first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos || second + 1 >= line.size()) continue;
    const std::string_view path = line.substr(second + 1);
    if (line.substr(0, first) == "0" && second == first + 1) {
      unified = std::string(path);
    } else if (!other || (*other == "/" && path != "/")) {
      other = std::string(path);
    }
  }
  if (unified && (*unified != "/" || !other || *other == "/")) return unified;
  return other;
}

std::optional<std::string> TerminalOf(std::string_view stat) {
  // Behind the name come state, ppid, pgrp, session, tty_nr.
  const size_t close = stat.rfind(')');
  if (close == stat.npos) return std::nullopt;
  stat.remove_prefix(close + 1);
  for (int field = 0; field < 4; ++field) {
    stat.remove_prefix(std::min(stat.find_first_not_of(' '), stat.size()));
    stat.remove_prefix(std::min(stat.find(' '), stat.size()));
  }
  stat.remove_prefix(std::min(stat.find_first_not_of(' '), stat.size()));
  int number = 0;
  const auto [end, error] =
      std::from_chars(stat.data(), stat.data() + stat.size(), number);
  if (error != std::errc()) return std::nullopt;
  if (number == 0) return "none";
  // proc_pid_stat(5): the minor number is in bits 31 to 20 and 7 to 0.
  const auto bits = static_cast<uint32_t>(number);
  const uint32_t major_number = bits >> 8 & 0xfff;
  const uint32_t minor_number = (bits >> 12 & 0xfff00) | (bits & 0xff);
  // linux/Documentation/admin-guide/devices.txt
  if (major_number >= 136 && major_number <= 143) {
    return "pts/" + std::to_string((major_number - 136) * 256 + minor_number);
  }
  if (major_number == 4 && minor_number < 64) {
    return "tty" + std::to_string(minor_number);
  }
  if (major_number == 4 && minor_number < 256) {
    return "ttyS" + std::to_string(minor_number - 64);
  }
  if (major_number == 5 && minor_number == 1) return "console";
  return std::to_string(major_number) + ':' + std::to_string(minor_number);
}

uint32_t InnerPidOf(std::string_view status) {
  // "NSpid:\t4711\t7\n"
  constexpr std::string_view kKey = "\nNSpid:";
  const size_t at = status.find(kKey);
  if (at == status.npos) return 0;
  std::string_view line = status.substr(at + kKey.size());
  line = Trim(TakeUpTo(line, '\n'));
  const size_t last = line.find_last_of("\t ");
  if (last == line.npos) return 0;  // there is but one
  uint32_t pid = 0;
  std::from_chars(line.data() + last + 1, line.data() + line.size(), pid);
  return pid;
}

std::string CommandLineOf(std::string_view arguments) {
  while (arguments.ends_with('\0')) arguments.remove_suffix(1);
  std::string line(arguments);
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

}  // namespace tracefs
