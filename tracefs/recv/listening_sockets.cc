#include "tracefs/recv/listening_sockets.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace tracefs {

ListeningSockets::~ListeningSockets() {
  for (const SocketFile& file : files_) {
    ::unlinkat(file.folder.get(), file.name.c_str(), 0);
  }
}

Status ListeningSockets::Open(const std::vector<net::Address>& addresses,
                              std::vector<HandedSocket> handed) {
  for (const net::Address& address : addresses) {
    Result<UniqueFd> fd = Listen(address);
    if (!fd.ok()) return fd.status();
    sockets_.push_back({address, *std::move(fd)});
    if (!address.is_unix()) continue;
    const std::filesystem::path path(address.host);
    const std::string folder =
        path.has_parent_path() ? path.parent_path().string() : ".";
    files_.push_back(
        {UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
         path.filename().string()});
  }
  for (HandedSocket& socket : handed) sockets_.push_back(std::move(socket));
  return Status::Ok();
}

std::vector<std::string> ListeningSockets::Texts() const {
  std::vector<std::string> all;
  for (const HandedSocket& socket : sockets_) {
    all.push_back(ListenText(socket.address, socket.fd.get()));
  }
  return all;
}

}  // namespace tracefs
