// Simulated hosts that send to a broker: each has a connection and a serial of
// its own, and sends the blocks of one trace in turn, as its courier would:
// some on their way at a time, and after a break all that were not
// acknowledged.
//
//   fleet_senders BROKER TRACE HOSTS SECONDS BLOCKS_PER_SECOND REPLICAS
//
// BROKER is nats:HOST:PORT,… or kafka:HOST:PORT,…, and a stream of NATS is made
// with that many REPLICAS unless it is there; BLOCKS_PER_SECOND is that of
// all together, 0: as fast as it goes. Ends when all that was sent is
// acknowledged, and prints what that was, as JSON.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/broker/publisher.h"
#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kThreads = 2;
constexpr uint64_t kUnderWay = 64;
constexpr auto kPause = std::chrono::milliseconds(500);

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "fleet_senders: %s\n", why.c_str());
  std::exit(1);
}

// A trace in pieces: what comes first, and then again and again the others.
struct Template {
  std::string chain;
  std::vector<std::string> payloads;

  explicit Template(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(in)), {});
    const Result<size_t> length = format::PreambleLength(
        AsBytes(all).first(std::min<size_t>(12, all.size())));
    if (!length.ok() || *length > all.size()) Die(path + " is no trace");
    const auto preamble = format::DecodePreamble(AsBytes(all).first(*length));
    if (!preamble.ok()) Die(preamble.status().message());
    chain = preamble->chain;
    ByteSpan rest = AsBytes(all).subspan(*length);
    while (const auto frame = format::FrameAt(rest, preamble->serial)) {
      rest = rest.subspan(format::kFrameHeaderBytes + frame->payload.size());
      if (frame->header.kind ==
          static_cast<uint16_t>(format::FrameKind::kMessages)) {
        payloads.emplace_back(AsText(frame->payload));
      }
    }
    if (payloads.size() < 3) Die(path + " has too few blocks");
    payloads.pop_back();  // it says that the trace ends
  }
  const std::string& Payload(uint64_t sequence) const {
    return payloads[sequence == 0 ? 0
                                  : 1 + (sequence - 1) % (payloads.size() - 1)];
  }
};

class Host {
 public:
  Host(BrokerSpec spec, const Template& blocks, size_t number)
      : spec_(std::move(spec)), blocks_(blocks) {
    spec_.host = "host" + std::to_string(number);
    spec_.tracer = "trace";
    std::random_device random;
    for (auto& byte : serial_) {
      byte = static_cast<std::remove_reference_t<decltype(byte)>>(random());
    }
    preamble_ =
        format::EncodePreamble({.serial = serial_, .chain = blocks_.chain});
  }

  // Connects where it is not, learns what was acknowledged.
  void Look() {
    if (publisher_ == nullptr) {
      if (Clock::now() < again_) return;
      auto made = MakePublisher(spec_);
      if (!made.ok()) return Fail(made.status());
      publisher_ = *std::move(made);
      base_ = next_ = acknowledged_;
    }
    const Result<uint64_t> all = publisher_->Acknowledged();
    if (!all.ok()) return Fail(all.status());
    acknowledged_ = base_ + *all;
  }
  // Sends a block, if that many are not under way.
  bool Send() {
    if (publisher_ == nullptr || next_ - acknowledged_ >= kUnderWay) {
      return false;
    }
    const std::string& payload = blocks_.Payload(next_);
    std::array<std::byte, format::kFrameHeaderBytes> header;
    format::EncodeFrameHeader(header, {.sequence = next_, .serial = serial_},
                              AsBytes(payload));
    message_.assign(preamble_);
    message_ += AsText(header);
    message_ += payload;
    const Status status = publisher_->Publish(
        format::SerialText(serial_) + '-' + std::to_string(next_),
        AsBytes(message_));
    if (!status.ok()) {
      Fail(status);
      return false;
    }
    ++next_;
    most_ = std::max(most_, next_);
    bytes_ += message_.size();
    return true;
  }
  // All that it ever sent.
  bool done() const { return acknowledged_ >= most_; }
  bool all_sent_again() const { return next_ >= most_; }
  uint64_t blocks() const { return acknowledged_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t breaks() const { return breaks_; }
  const std::string& why() const { return why_; }

 private:
  void Fail(const Status& status) {
    publisher_.reset();
    again_ = Clock::now() + kPause;
    ++breaks_;
    why_ = status.message();
  }

  BrokerSpec spec_;
  const Template& blocks_;
  format::Serial serial_{};
  std::string preamble_;
  std::string message_;
  std::unique_ptr<Publisher> publisher_;
  Clock::time_point again_{};
  uint64_t acknowledged_ = 0;  // blocks, from the first on
  uint64_t base_ = 0;          // that were before this publisher
  uint64_t next_ = 0;
  uint64_t most_ = 0;
  uint64_t bytes_ = 0;
  uint64_t breaks_ = 0;
  std::string why_;
};

void Work(std::vector<Host>& hosts, size_t first, double seconds,
          double blocks_per_second) {
  for (size_t i = first; i < hosts.size(); i += kThreads) hosts[i].Look();
  const auto begin = Clock::now();
  uint64_t sent = 0;
  for (bool sending = true;;) {
    const double now =
        std::chrono::duration<double>(Clock::now() - begin).count();
    if (now >= seconds) sending = false;
    bool all_done = true;
    bool any = false;
    for (size_t i = first; i < hosts.size(); i += kThreads) {
      Host& host = hosts[i];
      host.Look();
      const bool due = blocks_per_second == 0 ||
                       static_cast<double>(sent) < now * blocks_per_second;
      if ((sending && due) || !host.all_sent_again()) {
        if (host.Send()) {
          ++sent;
          any = true;
        }
      }
      all_done = all_done && host.done();
    }
    if (!sending && all_done) return;
    if (!any) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

int Main(int argc, char** argv) {
  if (argc != 7) {
    Die("fleet_senders BROKER TRACE HOSTS SECONDS BLOCKS_PER_SECOND REPLICAS");
  }
  const std::string broker = argv[1];
  const size_t colon = broker.find(':');
  BrokerSpec spec;
  const auto kind = ParseBrokerKind(broker.substr(0, colon));
  if (colon == broker.npos || !kind) Die("'" + broker + "' is no broker");
  spec.kind = *kind;
  auto servers = ParseServers(std::string_view(broker).substr(colon + 1));
  if (!servers.ok()) Die(servers.status().message());
  spec.servers = *std::move(servers);
  spec.create = true;
  spec.replicas = static_cast<uint32_t>(std::atoi(argv[6]));
  const Template blocks(argv[2]);
  const auto count = static_cast<size_t>(std::atoi(argv[3]));
  const double seconds = std::atof(argv[4]);
  const double rate = std::atof(argv[5]) / kThreads;
  std::vector<Host> hosts;
  for (size_t i = 0; i < count; ++i) hosts.emplace_back(spec, blocks, i);
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { Work(hosts, i, seconds, rate); });
    }
  }
  uint64_t sent = 0;
  uint64_t bytes = 0;
  uint64_t breaks = 0;
  std::string why;
  for (const Host& host : hosts) {
    sent += host.blocks();
    bytes += host.bytes();
    breaks += host.breaks();
    if (!host.why().empty()) why = host.why();
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  std::printf(
      "{\"hosts\": %zu, \"blocks_of_trace\": %zu, \"blocks\": %llu, \"bytes\": "
      "%llu, \"breaks\": %llu, "
      "\"seconds\": %.3f, \"memory_kb\": %ld}\n",
      count, blocks.payloads.size(), static_cast<unsigned long long>(sent),
      static_cast<unsigned long long>(bytes),
      static_cast<unsigned long long>(breaks),
      std::chrono::duration<double>(Clock::now() - begin).count(),
      used.ru_maxrss);
  if (!why.empty()) std::fprintf(stderr, "fleet_senders: %s\n", why.c_str());
  return 0;
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) { return tracefs::Main(argc, argv); }
