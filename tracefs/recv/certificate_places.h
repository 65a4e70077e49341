// Where the receiver's certificates lie, so that they can be read again from
// within a sandbox: the folders are held open.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "tracefs/base/unique_fd.h"
#include "tracefs/net/tls.h"

namespace tracefs {

class CertificatePlaces {
 public:
  // Opens the folders of `files`, which may be empty. Before a sandbox.
  explicit CertificatePlaces(net::TlsFiles files);

  // What is there now. Names must not lead out of their folders once a sandbox
  // has closed in: certificates are replaced in place, or by rename(2).
  Result<std::unique_ptr<net::TlsContext>> Read() const;

 private:
  net::TlsFiles files_;
  std::array<UniqueFd, 3> folders_;
  std::array<std::string, 3> names_;
};

}  // namespace tracefs
