// Sockets of the machine's logs: datagrams, written without waiting.
//
// Opened before a sandbox closes in, a socket works inside it. Neither
// syslog(3) nor sd_journal_send(3) can be used there: they connect late, and
// wait.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

inline constexpr char kSyslogSocket[] = "/dev/log";
inline constexpr char kJournalSocket[] = "/run/systemd/journal/socket";

Result<UniqueFd> ConnectLog(const std::string& path);

// Sends one datagram, or none: EAGAIN if there is no room now.
Status SendLog(int fd, std::string_view datagram);

// What syslogd(8) expects from this machine, facility daemon: "<29>Nov 22
// 03:04:05 tag[12]: text". Control characters in `text` are replaced.
std::string SyslogLine(int level, std::string_view tag, std::string_view text);

// The journal's native protocol. Values may hold anything.
std::string JournalEntry(
    const std::vector<std::pair<std::string_view, std::string>>& fields);

// `text` on one line: control characters as \xNN.
std::string OneLine(std::string_view text);

}  // namespace tracefs
