// A child process that does on command what changes a process: tests of
// tracefs/process look at it meanwhile.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

class Child {
 public:
  Child() {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(pair[0]);
      Serve(pair[1]);
    }
    ::close(pair[1]);
    socket_.Reset(pair[0]);
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  uint32_t pid() const { return static_cast<uint32_t>(pid_); }

  void SetSid() { Command('s'); }
  void SetPgid() { Command('g'); }
  // At most 15 bytes.
  void Rename(std::string name) {
    name.resize(16, '\0');
    Command('n', name);
  }
  // Becomes sleep(1); its name is then "sleep". Returns when that is so.
  void Exec() {
    char byte = 'e';
    EXPECT_EQ(::write(socket_.get(), &byte, 1), 1);
    // The descriptor is closed by a successful execve.
    EXPECT_EQ(::read(socket_.get(), &byte, 1), 0);
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  [[noreturn]] static void Serve(int socket) {
    char command;
    while (::read(socket, &command, 1) == 1) {
      bool ok = true;
      char name[16];
      switch (command) {
        case 's':
          ok = ::setsid() > 0;
          break;
        case 'g':
          ok = ::setpgid(0, 0) == 0;
          break;
        case 'n':
          ok = ::read(socket, name, sizeof name) == sizeof name &&
               ::prctl(PR_SET_NAME, name) == 0;
          break;
        case 'e':
          ::execl("/bin/sleep", "sleep", "1000", nullptr);
          ok = false;
          break;
      }
      const char answer = ok ? '+' : '-';
      if (::write(socket, &answer, 1) != 1) break;
    }
    ::_exit(0);
  }
  void Command(char command, const std::string& argument = "") {
    const std::string message = command + argument;
    EXPECT_EQ(::write(socket_.get(), message.data(), message.size()),
              static_cast<ssize_t>(message.size()));
    char answer = 0;
    EXPECT_EQ(::read(socket_.get(), &answer, 1), 1);
    EXPECT_EQ(answer, '+');
  }

  pid_t pid_ = -1;
  UniqueFd socket_;
};

}  // namespace tracefs
