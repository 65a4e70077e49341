// Files of /proc/PID, read whole, and what stands in their texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tracefs {

// A file of a process's, up to `most` bytes; nothing if it cannot be read.
// `proc`: a descriptor of /proc.
std::optional<std::string> ReadProcText(int proc, uint32_t pid,
                                        const char* name, size_t most);

// The rest of the line that begins with `key` ("\nTgid:\t").
std::optional<std::string_view> LineOf(std::string_view text,
                                       std::string_view key);

// The path of the control group, of the text of /proc/PID/cgroup: that in the
// unified hierarchy (cgroup 2); where there is none, or the process is at its
// root, the first other one that is not a root.
std::optional<std::string> CgroupOf(std::string_view text);

// The name of a controlling terminal, of the text of /proc/PID/stat: "pts/3",
// "tty1", "ttyS0", "4:200" of others; "none" where there is none.
std::optional<std::string> TerminalOf(std::string_view stat);

// The pid in the innermost pid namespace, of the text of /proc/PID/status; 0 if
// that is the one it is known by.
uint32_t InnerPidOf(std::string_view status);

// Arguments as a line of text: blanks instead of the zero bytes between them,
// and none at the end.
std::string CommandLineOf(std::string_view arguments);

}  // namespace tracefs
