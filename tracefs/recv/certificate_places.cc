#include "tracefs/recv/certificate_places.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "tracefs/base/enclosed_folder.h"

namespace tracefs {

CertificatePlaces::CertificatePlaces(net::TlsFiles files)
    : files_(std::move(files)) {
  const std::array<const std::string*, 3> paths = {&files_.ca, &files_.cert,
                                                   &files_.key};
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = *paths[i];
    if (path.empty()) continue;
    const size_t slash = path.rfind('/');
    const std::string folder =
        slash == path.npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
    names_[i] = slash == path.npos ? path : path.substr(slash + 1);
    UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    // Within a sandbox nothing else is to be reached through it.
    if (fd) folders_[i] = EncloseFolder(std::move(fd));
  }
}

Result<std::unique_ptr<net::TlsContext>> CertificatePlaces::Read() const {
  const std::array<const std::string*, 3> paths = {&files_.ca, &files_.cert,
                                                   &files_.key};
  std::array<UniqueFd, 3> opened;
  net::TlsFiles now = files_;
  for (size_t i = 0; i < paths.size(); ++i) {
    opened[i].Reset(::openat(folders_[i].get(), names_[i].c_str(),
                             O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!opened[i]) return Status::System(errno, "'" + *paths[i] + "'");
    now.given[i] = opened[i].get();
  }
  return net::TlsContext::Create(net::TlsContext::Role::kReceiver, now);
}

}  // namespace tracefs
