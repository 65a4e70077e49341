// FIFOs, sockets, devices.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

sockaddr_un Address(const char* path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return address;
}

int Bind(int fd, const char* path) {
  const sockaddr_un address = Address(path);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address),
                sizeof address);
}
int Connect(int fd, const char* path) {
  const sockaddr_un address = Address(path);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address),
                   sizeof address);
}

constexpr Scenario kScenarios[] = {
    {"special.mknod_kinds", kAll,
     [](Run& run) {
       CALL(::mknod("reg", S_IFREG | 0644, 0));
       CALL(::mknod("zero", 0644, 0));
       CALL(::mknod("fifo", S_IFIFO | 0640, 0));
       CALL(::mknod("sock", S_IFSOCK | 0750, 0));
       CALL(::mknod("char", S_IFCHR | 0600, makedev(1, 3)));
       CALL(::mknod("block", S_IFBLK | 0600, makedev(7, 200)));
       CALL(::mknod("big", S_IFCHR | 0600, makedev(300, 70000)));
       CALL(::mknod("whiteout", S_IFCHR | 0600, 0));
       CALL(::mknod("dir", S_IFDIR | 0755, 0));
       CALL(::mknod("link", S_IFLNK | 0777, 0));
       CALL(::mknod("bad", 0170000 | 0644, 0));
       CALL(::mknod("reg", S_IFREG | 0644, 0));
       CALL(::mknod("missing/x", S_IFREG | 0644, 0));
       for (const char* n : {"reg", "zero", "fifo", "sock", "char", "block",
                             "big", "whiteout", "dir", "link", "bad"}) {
         run.Stat(n);
       }
     }},
    {"special.mknod_umask", kAll,
     [](Run& run) {
       ::umask(027);
       CALL(::mknod("reg", S_IFREG | 0777, 0));
       CALL(::mkfifo("fifo", 0666));
       run.Stat("reg");
       run.Stat("fifo");
     }},
    {"special.open_device_nodes", kRootOnly,
     [](Run& run) {
       CALL(::mknod("null", S_IFCHR | 0666, makedev(1, 3)));
       const int fd = FD(::open("null", O_RDWR));
       CALL(::write(fd, "x", 1));
     }},
    {"special.fifo_io", kAll,
     [](Run& run) {
       CALL(::mkfifo("p", 0600));
       FD(::open("p", O_WRONLY | O_NONBLOCK));
       const int r = FD(::open("p", O_RDONLY | O_NONBLOCK));
       const int w = FD(::open("p", O_WRONLY | O_NONBLOCK));
       char b[32] = {};
       CALL(::read(r, b, sizeof b));
       CALL(::write(w, "through", 7));
       int waiting = 0;
       CALL(::ioctl(r, FIONREAD, &waiting));
       run.Note("waiting %d", waiting);
       pollfd p = {r, POLLIN | POLLOUT, 0};
       CALL(::poll(&p, 1, 1000));
       run.Note("revents %d", p.revents);
       CALL(::read(r, b, sizeof b));
       run.Bytes("read", b);
       CALL(::lseek(r, 0, SEEK_CUR));
       CALL(::ftruncate(w, 0));
       CALL(::close(w));
       CALL(::read(r, b, sizeof b));
       CALL(::poll(&p, 1, 0));
       run.Note("revents %d", p.revents);
       run.FStat(r);
     }},
    {"special.fifo_between_processes", kAll,
     [](Run& run) {
       CALL(::mkfifo("p", 0600));
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         const int w = PEER_FD(::open("p", O_WRONLY));
         PEER_CALL(::write(w, "hello", 5));
         PEER_CALL(::close(w));
       });
       const int r = FD(::open("p", O_RDONLY));
       char b[32] = {};
       CALL(::read(r, b, sizeof b));
       run.Bytes("read", b);
       peer.Join();
       CALL(::read(r, b, sizeof b));
     }},
    {"special.fifo_open_blocks_until_other_end", kAll,
     [](Run& run) {
       CALL(::mkfifo("p", 0600));
       Run::Peer peer(
           run, [](Run& side, Run::Peer&) { PEER_FD(::open("p", O_RDONLY)); });
       peer.UntilAsleep();
       FD(::open("p", O_WRONLY));
       peer.Join();
     }},
    {"special.fifo_epipe", kAll,
     [](Run& run) {
       CALL(::mkfifo("p", 0600));
       const int rw = FD(::open("p", O_RDWR));
       const int w = FD(::open("p", O_WRONLY));
       CALL(::close(rw));
       CALL(::write(w, "x", 1));
     }},
    {"special.fifo_renamed_and_removed_while_open", kAll,
     [](Run& run) {
       CALL(::mkfifo("p", 0600));
       const int rw = FD(::open("p", O_RDWR));
       CALL(::rename("p", "q"));
       const int other = FD(::open("q", O_RDWR));
       CALL(::write(rw, "a", 1));
       char c = 0;
       CALL(::read(other, &c, 1));
       CALL(::unlink("q"));
       CALL(::write(rw, "b", 1));
       CALL(::read(other, &c, 1));
       run.FStat(rw);
     }},
    {"special.fifo_chmod_chown", kAll,
     [](Run& run) {
       CALL(::mkfifo("p", 0600));
       const int rw = FD(::open("p", O_RDWR));
       CALL(::fchmod(rw, 0640));
       CALL(::chmod("p", 0644));
       CALL(::fchown(rw, static_cast<uid_t>(-1), ::getegid()));
       const timespec times[2] = {{5, 6}, {7, 8}};
       CALL(::futimens(rw, times));
       run.Times("p");
       run.Stat("p");
     }},
    {"special.socket_stream", kAll,
     [](Run& run) {
       const int listener = FD(::socket(AF_UNIX, SOCK_STREAM, 0));
       CALL(Bind(listener, "s"));
       run.Stat("s");
       CALL(::listen(listener, 5));
       const int client = FD(::socket(AF_UNIX, SOCK_STREAM, 0));
       CALL(Connect(client, "s"));
       const int server = FD(::accept(listener, nullptr, nullptr));
       CALL(::write(client, "ping", 4));
       char b[8] = {};
       CALL(::read(server, b, sizeof b));
       run.Bytes("got", b);
       FD(::open("s", O_RDWR));
       const int again = ::socket(AF_UNIX, SOCK_STREAM, 0);
       CALL(Bind(again, "s"));
       CALL(::unlink("s"));
       CALL(Bind(again, "s"));
       const int late = ::socket(AF_UNIX, SOCK_STREAM, 0);
       CALL(Connect(late, "s"));
     }},
    {"special.socket_datagram", kAll,
     [](Run& run) {
       const int receiver = FD(::socket(AF_UNIX, SOCK_DGRAM, 0));
       CALL(Bind(receiver, "log"));
       const int sender = FD(::socket(AF_UNIX, SOCK_DGRAM, 0));
       CALL(Connect(sender, "log"));
       CALL(::send(sender, "line", 4, 0));
       char b[8] = {};
       CALL(::recv(receiver, b, sizeof b, 0));
       run.Bytes("got", b);
       CALL(::rename("log", "log2"));
       CALL(::send(sender, "more", 4, 0));
       CALL(Connect(sender, "log"));
       CALL(Connect(sender, "log2"));
     }},
    {"special.socket_permissions", kUsersOnly,
     [](Run& run) {
       const int client = FD(::socket(AF_UNIX, SOCK_STREAM, 0));
       CALL(Connect(client, "closed"));
       CALL(Connect(client, "open"));
       CALL(Connect(client, "file"));
     },
     [](Run&) {
       for (const char* name : {"closed", "open"}) {
         const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
         Bind(s, name);
         ::listen(s, 5);
         ::chmod(name, name[0] == 'c' ? 0600 : 0666);
       }
       WriteFile("file", "x");
     }},
    {"special.socket_names", kAll,
     [](Run& run) {
       const int s = FD(::socket(AF_UNIX, SOCK_STREAM, 0));
       CALL(Bind(s, "missing/s"));
       WriteFile("f", "x");
       CALL(Bind(s, "f"));
       CALL(Bind(s, "f/s"));
       ::umask(077);
       CALL(Bind(s, "masked"));
       run.Stat("masked");
       sockaddr_un name = {};
       socklen_t size = sizeof name;
       CALL(::getsockname(s, reinterpret_cast<sockaddr*>(&name), &size));
       run.Bytes("name", name.sun_path);
     }},
};

}  // namespace

std::span<const Scenario> SpecialScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
