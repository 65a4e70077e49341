#include "tracefs/base/file_io.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tracefs {
namespace {

// `write` writes some of a span that begins that far after the start.
template <typename Write>
Status WriteWith(const Write& write, ByteSpan bytes, std::string_view what) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(bytes.subspan(done), done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Status::System(n < 0 ? errno : ENOSPC, what);
    done += static_cast<size_t>(n);
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> ReadText(int fd, size_t max_bytes, std::string_view what) {
  constexpr size_t kStep = 4096;
  std::string text;
  while (text.size() < max_bytes) {
    const size_t had = text.size();
    text.resize(std::min(had + kStep, max_bytes));
    const ssize_t n = ::read(fd, text.data() + had, text.size() - had);
    text.resize(had + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::System(errno, what);
    if (n == 0) break;
  }
  return text;
}

ssize_t ReadAt(int fd, std::span<std::byte> out, uint64_t offset) {
  size_t size = 0;
  while (size < out.size()) {
    const ssize_t n = ::pread(fd, out.data() + size, out.size() - size,
                              static_cast<off_t>(offset + size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(size);
}

Status WriteAll(int fd, ByteSpan bytes, std::string_view what) {
  return WriteWith(
      [fd](ByteSpan rest, size_t) {
        return ::write(fd, rest.data(), rest.size());
      },
      bytes, what);
}

Status WriteAllAt(int fd, ByteSpan bytes, uint64_t offset,
                  std::string_view what) {
  return WriteWith(
      [fd, offset](ByteSpan rest, size_t done) {
        return ::pwrite(fd, rest.data(), rest.size(),
                        static_cast<off_t>(offset + done));
      },
      bytes, what);
}

}  // namespace tracefs
