// What drivers over a network open when they are made, or get from who asks a
// daemon in its sandbox for a tracer: processes that connect, and TLS files.
#pragma once

#include <memory>
#include <vector>

#include "config/config.h"
#include "drivers/output/remote/sender.h"
#include "tracefs/pipeline/wish.h"

namespace tracefs {

inline void WishDialer(const net::Address& address, std::vector<Wish>* wishes) {
  wishes->push_back({.path = address.Text(), .kind = Wish::Kind::kDialer});
}

inline Result<std::unique_ptr<Dialer>> DialerOf(const net::Address& address,
                                                Given* given) {
  if (given->any()) {
    return MakeProcessDialer(HelperKind::kDial, address.Text(), given->Take());
  }
  return StartDialerProcess(address);
}

// The options ca, cert and key of an entry that has them.
inline void WishTls(const ConfigEntry& entry, std::vector<Wish>* wishes) {
  for (const std::string_view option : {"ca", "cert", "key"}) {
    wishes->push_back(
        {.path = entry.Find(option)->value.text, .kind = Wish::Kind::kRead});
  }
}

// `given` may be null.
inline Result<std::unique_ptr<net::TlsContext>> TlsOf(const ConfigEntry& entry,
                                                      Given* given) {
  net::TlsFiles files;
  files.ca = entry.Text("ca");
  files.cert = entry.Text("cert");
  files.key = entry.Text("key");
  std::array<UniqueFd, 3> opened;
  for (size_t i = 0; given != nullptr && i < opened.size(); ++i) {
    opened[i] = given->Take();
    files.given[i] = opened[i].get();
  }
  return net::TlsContext::Create(net::TlsContext::Role::kSender, files);
}

// What an entry says of its connections.
inline Status FillSender(const ConfigEntry& entry, const net::Address& address,
                         Given* given, SenderOptions* options) {
  options->address = address;
  options->retry = entry.Duration("retry", options->retry);
  if (address.transport != net::Transport::kTls) return Status::Ok();
  Result<std::unique_ptr<net::TlsContext>> tls = TlsOf(entry, given);
  if (!tls.ok()) return tls.status();
  options->tls = *std::move(tls);
  options->tls_name = entry.Text("name", address.host);
  return Status::Ok();
}

}  // namespace tracefs
