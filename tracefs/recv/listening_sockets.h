// The sockets that a receiver listens at, its own and those it was handed.
#pragma once

#include <string>
#include <vector>

#include "tracefs/recv/listener.h"

namespace tracefs {

class ListeningSockets {
 public:
  ListeningSockets() = default;
  // The files of Unix sockets that it made go.
  ~ListeningSockets();
  ListeningSockets(const ListeningSockets&) = delete;
  ListeningSockets& operator=(const ListeningSockets&) = delete;

  Status Open(const std::vector<net::Address>& addresses,
              std::vector<HandedSocket> handed);

  size_t size() const { return sockets_.size(); }
  int fd(size_t i) const { return sockets_[i].fd.get(); }
  const net::Address& address(size_t i) const { return sockets_[i].address; }
  // As ListenText has them.
  std::vector<std::string> Texts() const;

 private:
  // To be found from within a sandbox, too.
  struct SocketFile {
    UniqueFd folder;
    std::string name;
  };

  std::vector<HandedSocket> sockets_;
  std::vector<SocketFile> files_;
};

}  // namespace tracefs
