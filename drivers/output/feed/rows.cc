// The row of the `syslog` driver, and feeds over the connections of others.
#include "drivers/output/feed/rows.h"

#include <unistd.h>

#include <array>

#include "config/shared_options.h"
#include "drivers/output/feed/feed.h"
#include "drivers/output/feed/stream_feed.h"
#include "drivers/output/remote/given.h"
#include "drivers/output/rows.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text_cursor.h"

namespace tracefs {
namespace {

using net::Transport;

constexpr std::string_view kSockets[] = {"tcp", "tls", "udp", "unix"};
constexpr std::string_view kFacilities[] = {
    "kern",   "user",   "mail",   "daemon", "auth",     "syslog",
    "lpr",    "news",   "uucp",   "cron",   "authpriv", "ftp",
    "ntp",    "audit",  "alert",  "clock",  "local0",   "local1",
    "local2", "local3", "local4", "local5", "local6",   "local7"};
constexpr std::string_view kTlsOptions[] = {"ca", "cert", "key", "name"};

constexpr OptionRow kSyslogOptions[] = {
    {.name = "feed",
     .alias = "format",
     .type = ValueType::kChoice,
     .words = std::span(kFeedWords).subspan(1)},  // blocks are no messages
    {.name = "facility", .type = ValueType::kChoice, .words = kFacilities},
    {.name = "ca", .type = ValueType::kText},
    {.name = "cert", .type = ValueType::kText},
    {.name = "key", .type = ValueType::kText},
    {.name = "name", .type = ValueType::kText},
    kBufOption,
    {.name = "unbuffered"},
    kBlockOrDropOption,
    kDeadlineOption,
    kQueueOption,
    kRetryOption};

// "tls:HOST:PORT"
Result<net::Address> SyslogAddress(const ConfigEntry& entry) {
  const std::string_view text = entry.value.text;
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view rest = text.substr(colon + 1);
    constexpr std::array kTransports = {Transport::kTcp, Transport::kTls,
                                        Transport::kUdp, Transport::kDatagram};
    for (size_t i = 0; i < kTransports.size(); ++i) {
      if (name != kSockets[i]) continue;
      Result<net::Address> address =
          net::ParseAddress(kTransports[i], rest, /*listen=*/false);
      return address.ok() ? address : address.status().Prefixed("syslog");
    }
  }
  return Status::Invalid("syslog: " + Quoted(text) +
                         " does not begin with a kind of socket" +
                         DidYouMean(name, kSockets) +
                         "; write tcp:HOST:PORT, tls:HOST:PORT, udp:HOST:PORT "
                         "or unix:PATH");
}

Status CheckSyslog(const ConfigEntry& entry) {
  const Result<net::Address> address = SyslogAddress(entry);
  if (!address.ok()) return address.status();
  const bool tls = address->transport == Transport::kTls;
  for (const std::string_view option : kTlsOptions) {
    const bool given = entry.Has(option);
    if (given && !tls) {
      return Status::Invalid("syslog: " + std::string(option) +
                             " belongs to tls:HOST:PORT");
    }
    if (!given && tls && option != "name") {
      return Status::Invalid("syslog: tls needs " + std::string(option) +
                             " = FILE");
    }
  }
  return CheckFeed(entry);
}

Status ProbeSyslog(const ConfigEntry& entry) {
  return entry.Has("key") ? TlsOf(entry, nullptr).status() : Status::Ok();
}

// The sink of an entry, whatever the driver is called.
Result<MadeOutputDriver> MakeConnection(const ConfigEntry& entry,
                                        const net::Address& address,
                                        FeedFraming framing, Given* given) {
  StreamFeedOptions options;
  options.framing = framing;
  const LossPolicy when_full = PolicyOf(entry, LossPolicy::kBlock);
  options.deadline = std::chrono::nanoseconds(
      when_full == LossPolicy::kDrop ? 0
                                     : entry.Number("deadline", kNsPerSecond));
  options.limit_bytes = entry.Number("queue", options.limit_bytes);
  options.buffer_bytes = entry.Number("buf");
  if (framing != FeedFraming::kLines) {
    std::array<char, 256> host{};
    static_cast<void>(::gethostname(host.data(), host.size() - 1));
    options.host = host.data();
    const std::string_view facility = entry.Text("facility");
    for (size_t i = 0; i < std::size(kFacilities); ++i) {
      if (facility == kFacilities[i]) options.facility = static_cast<int>(i);
    }
  }
  // The process first, so that it has no keys in its memory.
  Result<std::unique_ptr<Dialer>> dialer = DialerOf(address, given);
  if (!dialer.ok()) return dialer.status();
  if (Status s = FillSender(entry, address, given, &options); !s.ok()) return s;
  return MadeOutputDriver{
      .driver = MakeStreamFeed(MakeFeedFormat(FeedOf(entry)),
                               std::move(options), std::move(*dialer)),
      .when_full = when_full};
}

Result<MadeOutputDriver> MakeSyslog(const ConfigEntry& entry,
                                    OutputDriverInputs inputs) {
  const Result<net::Address> address = SyslogAddress(entry);
  if (!address.ok()) return address.status();
  const bool datagram = address->transport == Transport::kUdp ||
                        address->transport == Transport::kDatagram;
  return MakeConnection(
      entry, *address, datagram ? FeedFraming::kDatagram : FeedFraming::kOctets,
      &inputs.given);
}

// In the order in which MakeConnection takes them.
std::vector<Wish> SyslogWishes(const ConfigEntry& entry) {
  const Result<net::Address> address = SyslogAddress(entry);
  if (!address.ok()) return {};
  std::vector<Wish> wishes;
  WishDialer(*address, &wishes);
  if (address->transport == Transport::kTls) WishTls(entry, &wishes);
  return wishes;
}

}  // namespace

Status CheckFeed(const ConfigEntry& entry) {
  if (FeedOf(entry).empty()) return Status::Ok();
  const std::string_view policy = entry.Text("when_full");
  if (!policy.empty() && policy != "block" && policy != "drop") {
    return Status::Invalid(entry.name +
                           ": with a feed, when_full is block or "
                           "drop: its receiver answers nothing");
  }
  if (policy == "drop" && entry.Has("deadline")) {
    return Status::Invalid(entry.name +
                           ": deadline belongs to when_full = block");
  }
  for (const std::string_view option : {"max", "timeout"}) {
    if (!entry.Has(option)) continue;
    return Status::Invalid(entry.name + ": " + std::string(option) +
                           " has no meaning with a feed");
  }
  return Status::Ok();
}

Result<MadeOutputDriver> MakeFeedConnection(const ConfigEntry& entry,
                                            const net::Address& address,
                                            Given* given) {
  return MakeConnection(entry, address, FeedFraming::kLines, given);
}

OutputDriverRow SyslogRow() {
  OutputDriverRow row;
  row.entry = {.name = "syslog",
               .role = EntryRole::kDriver,
               .value = {.type = ValueType::kText, .required = true},
               .options = kSyslogOptions};
  row.help = "a syslog daemon, RFC 5424, over TLS, TCP, UDP or a Unix socket";
  row.make = &MakeSyslog;
  row.wishes = &SyslogWishes;
  row.check = &CheckSyslog;
  row.probe = &ProbeSyslog;
  row.feed = &FeedOf;
  return row;
}

}  // namespace tracefs
