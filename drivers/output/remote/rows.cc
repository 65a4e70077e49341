// The rows of the network drivers: their options, and how they are made.
#include "drivers/output/rows.h"

#include <utility>

#include "drivers/output/feed/rows.h"
#include "drivers/output/remote/given.h"
#include "drivers/output/remote/remote.h"
#include "drivers/output/remote/waiting.h"
#include "tracefs/net/address.h"

namespace tracefs {
namespace {

constexpr auto kTlsOptions = WithWaitingOptions(
    {{.name = "ca", .type = ValueType::kText, .required = true},
     {.name = "cert", .type = ValueType::kText, .required = true},
     {.name = "key", .type = ValueType::kText, .required = true},
     {.name = "name", .type = ValueType::kText}});
constexpr auto kUnixOptions = WithWaitingOptions({{.name = "seqpacket"}});

Result<net::Address> AddressOf(const ConfigEntry& entry) {
  net::Transport transport = net::Transport::kTcp;
  if (entry.name == "tls") transport = net::Transport::kTls;
  if (entry.name == "unix") {
    transport = entry.Has("seqpacket") ? net::Transport::kSeqpacket
                                       : net::Transport::kUnix;
  }
  return net::ParseAddress(transport, entry.value.text, /*listen=*/false);
}

Status Check(const ConfigEntry& entry) {
  const Result<net::Address> address = AddressOf(entry);
  if (!address.ok()) return address.status().Prefixed(entry.name);
  if (Status s = CheckFeed(entry); !s.ok()) return s;
  return CheckWaiting(entry);
}

// A receiver need not be there yet.
Status Probe(const ConfigEntry& entry) {
  if (FeedOf(entry).empty()) {
    if (Status s = ProbeWaiting(entry); !s.ok()) return s;
  }
  return entry.name == "tls" ? TlsOf(entry, nullptr).status() : Status::Ok();
}

Result<MadeOutputDriver> Make(const ConfigEntry& entry,
                              OutputDriverInputs inputs) {
  Result<net::Address> address = AddressOf(entry);
  if (!address.ok()) return address.status().Prefixed(entry.name);
  Given& given = inputs.given;
  if (!FeedOf(entry).empty()) {
    return MakeFeedConnection(entry, *address, &given);
  }
  RemoteOptions options = WaitingOf(entry);
  // Processes first, so that they have no keys in their memory.
  Result<std::unique_ptr<Dialer>> dialer = DialerOf(*address, &given);
  if (!dialer.ok()) return dialer.status();
  std::unique_ptr<Dialer> leftovers;
  if (options.when_full == LossPolicy::kSpill) {
    Result<std::unique_ptr<Dialer>> second = DialerOf(*address, &given);
    if (!second.ok()) return second.status();
    if (Status s = OpenSpill(entry, &given, &options); !s.ok()) return s;
    leftovers = std::move(*second);
  }
  if (Status s = FillSender(entry, *address, &given, &options.link); !s.ok())
    return s;
  const LossPolicy when_full = options.when_full;
  return Made(
      MakeRemote(std::move(options), std::move(*dialer), std::move(leftovers)),
      when_full);
}

// In the order in which Make takes them.
std::vector<Wish> Wishes(const ConfigEntry& entry) {
  const Result<net::Address> address = AddressOf(entry);
  if (!address.ok()) return {};
  std::vector<Wish> wishes;
  WishDialer(*address, &wishes);
  if (FeedOf(entry).empty()) wishes = WaitingWishes(entry, wishes);
  if (entry.name == "tls") WishTls(entry, &wishes);
  return wishes;
}

OutputDriverRow Row(std::string_view name, std::string_view help,
                    std::span<const OptionRow> options) {
  OutputDriverRow row;
  row.entry = {.name = name,
               .role = EntryRole::kDriver,
               .value = {.type = ValueType::kText, .required = true},
               .options = options};
  row.help = help;
  row.make = &Make;
  row.wishes = &Wishes;
  row.check = &Check;
  row.probe = &Probe;
  row.feed = &FeedOf;
  return row;
}

}  // namespace

OutputDriverRow TcpRow() {
  return Row("tcp", "a tracefs-recv at HOST:PORT", kWaitingOptions);
}

OutputDriverRow TlsRow() {
  return Row("tls", "the same over TLS 1.3, both sides certified", kTlsOptions);
}

OutputDriverRow UnixRow() {
  return Row("unix", "a tracefs-recv at a Unix socket", kUnixOptions);
}

}  // namespace tracefs
