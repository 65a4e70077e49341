// The rows of the network drivers: their options, and how they are made.
#include "drivers/output/rows.h"

#include <utility>

#include "drivers/output/feed/rows.h"
#include "drivers/output/remote/given.h"
#include "drivers/output/remote/remote.h"
#include "tracefs/base/clock.h"
#include "tracefs/net/address.h"

namespace tracefs {
namespace {

// With kFail half of it is for what is on its way when operations begin to be
// refused: 32 threads with a block of 256 KiB each, and the buffers of async.
constexpr uint64_t kFailQueueBytes = uint64_t{64} << 20;

constexpr OptionRow kUnbuffered = {.name = "unbuffered"};
constexpr OptionRow kWhenFull = {.name = "when_full",
                                 .type = ValueType::kChoice,
                                 .words = kPolicyWords,
                                 .word_with_text = "spill"};
constexpr OptionRow kMax = {.name = "max",
                            .type = ValueType::kSize,
                            .min = uint64_t{8} << 20,
                            .max = uint64_t{1} << 50};
constexpr OptionRow kTimeout = {.name = "timeout",
                                .type = ValueType::kDuration,
                                .min = kNsPerSecond,
                                .max = 600 * kNsPerSecond};

constexpr OptionRow kTcpOptions[] = {
    kBufOption,   kUnbuffered, kWhenFull,    kDeadlineOption, kMax,
    kQueueOption, kTimeout,    kRetryOption, kFeedOption};
constexpr OptionRow kTlsOptions[] = {
    {.name = "ca", .type = ValueType::kText, .required = true},
    {.name = "cert", .type = ValueType::kText, .required = true},
    {.name = "key", .type = ValueType::kText, .required = true},
    {.name = "name", .type = ValueType::kText},
    kBufOption,
    kUnbuffered,
    kWhenFull,
    kDeadlineOption,
    kMax,
    kQueueOption,
    kTimeout,
    kRetryOption,
    kFeedOption};
constexpr OptionRow kUnixOptions[] = {
    {.name = "seqpacket"}, kBufOption, kUnbuffered,  kWhenFull,
    kDeadlineOption,       kMax,       kQueueOption, kTimeout,
    kRetryOption,          kFeedOption};

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
  const LossPolicy policy = PolicyOf(entry, LossPolicy::kBlock);
  const auto only_with = [&](std::string_view option, bool allowed,
                             std::string_view what) {
    if (!entry.Has(option) || allowed) return Status::Ok();
    return Status::Invalid(entry.name + ": " + std::string(option) +
                           " belongs to when_full = " + std::string(what));
  };
  if (Status s = only_with("deadline", policy == LossPolicy::kBlock, "block");
      !s.ok()) {
    return s;
  }
  const bool spill = policy == LossPolicy::kSpill;
  if (Status s = only_with("max", spill, "spill"); !s.ok()) return s;
  if (Status s = only_with("queue", !spill,
                           "block, drop, degrade or fail; with spill, max "
                           "says how much may wait");
      !s.ok()) {
    return s;
  }
  if (spill && !entry.Has("max")) {
    return Status::Invalid(entry.name +
                           ": when_full = spill needs max = SIZE, the most "
                           "that may lie in the directory");
  }
  return Status::Ok();
}

// A receiver need not be there yet.
Status Probe(const ConfigEntry& entry) {
  if (FeedOf(entry).empty() &&
      PolicyOf(entry, LossPolicy::kBlock) == LossPolicy::kSpill) {
    const auto directory =
        SpillDirectory::Open(entry.Find("when_full")->value.argument);
    if (!directory.ok()) return directory.status();
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
  RemoteOptions options;
  const LossPolicy when_full = PolicyOf(entry, LossPolicy::kBlock);
  options.when_full = when_full;
  options.buffer_bytes = entry.Number("buf");
  options.deadline = entry.Duration("deadline", options.deadline);
  options.limit_bytes = entry.Number(
      "queue", options.when_full == LossPolicy::kFail ? kFailQueueBytes
                                                      : options.limit_bytes);
  LinkOptions& link = options.link;
  link.timeout = entry.Duration("timeout", link.timeout);
  // Processes first, so that they have no keys in their memory.
  Result<std::unique_ptr<Dialer>> dialer = DialerOf(*address, &given);
  if (!dialer.ok()) return dialer.status();
  std::unique_ptr<Dialer> leftovers;
  if (options.when_full == LossPolicy::kSpill) {
    options.limit_bytes = entry.Number("max");
    Result<std::unique_ptr<Dialer>> second = DialerOf(*address, &given);
    if (!second.ok()) return second.status();
    auto directory = SpillDirectory::Open(
        entry.Find("when_full")->value.argument, given.Take());
    if (!directory.ok()) return directory.status();
    options.spill = std::move(*directory);
    leftovers = std::move(*second);
  }
  if (Status s = FillSender(entry, *address, &given, &link); !s.ok()) return s;
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
  if (FeedOf(entry).empty() &&
      PolicyOf(entry, LossPolicy::kBlock) == LossPolicy::kSpill) {
    WishDialer(*address, &wishes);
    wishes.push_back({.path = entry.Find("when_full")->value.argument,
                      .kind = Wish::Kind::kDirectory});
  }
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
  return Row("tcp", "a tracefs-recv at HOST:PORT", kTcpOptions);
}

OutputDriverRow TlsRow() {
  return Row("tls", "the same over TLS 1.3, both sides certified", kTlsOptions);
}

OutputDriverRow UnixRow() {
  return Row("unix", "a tracefs-recv at a Unix socket", kUnixOptions);
}

}  // namespace tracefs
