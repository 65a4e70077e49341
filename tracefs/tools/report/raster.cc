#include "tracefs/tools/report/raster.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <span>

#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"

extern char** environ;

namespace tracefs {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

// rsvg-convert on two files in memory: neither can wait for the other.
Result<int> Run(int in, int out) {
  posix_spawn_file_actions_t files;
  if (::posix_spawn_file_actions_init(&files) != 0) {
    return Status::System(ENOMEM, "rsvg-convert");
  }
  ::posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  const std::array<const char*, 6> words = {
      "rsvg-convert", "--format", "png", "--zoom", "2", nullptr};
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, words[0], &files, nullptr,
                     const_cast<char* const*>(words.data()), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return Status::System(error, "rsvg-convert");
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR)
      return Status::System(errno, "waiting for rsvg-convert");
  }
  return status;
}

}  // namespace

Result<std::string> RasterOf(std::string_view svg) {
  const UniqueFd in(::memfd_create("picture.svg", MFD_CLOEXEC));
  const UniqueFd out(::memfd_create("picture.png", MFD_CLOEXEC));
  if (!in || !out) return Status::System(errno, "memory for a picture");
  if (Status s = WriteAll(in.get(), std::as_bytes(std::span(svg)), "a picture");
      !s.ok())
    return s;
  if (::lseek(in.get(), 0, SEEK_SET) < 0) return Status::System(errno, "lseek");
  const Result<int> status = Run(in.get(), out.get());
  const bool missing = !status.ok()
                           ? status.status().error() == ENOENT
                           : WIFEXITED(*status) && WEXITSTATUS(*status) == 127;
  if (missing) {
    return Status::SystemSaid(ENOENT,
                              "--format png needs rsvg-convert (Debian: "
                              "librsvg2-bin): install it, or "
                              "take --format svg");
  }
  if (!status.ok()) return status.status();
  if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
    return Status::SystemSaid(EIO, "rsvg-convert failed");
  }
  if (::lseek(out.get(), 0, SEEK_SET) < 0)
    return Status::System(errno, "lseek");
  return ReadText(out.get(), kMostBytes, "picture.png");
}

}  // namespace tracefs
