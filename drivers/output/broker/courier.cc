#include "drivers/output/broker/courier.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "drivers/output/remote/helper_process.h"
#include "tracefs/format/frame.h"
#include "tracefs/net/wire.h"

namespace tracefs {
namespace {

// On their way to the broker at a time; it has not acknowledged them yet.
constexpr uint64_t kMaxUnderWay = 1024;
constexpr uint64_t kMaxBytesUnderWay = uint64_t{16} << 20;
constexpr size_t kReadBytes = size_t{256} << 10;

class Conversation {
 public:
  Conversation(const BrokerSpec& spec, Publisher& publisher, int socket)
      : spec_(spec), publisher_(publisher), socket_(socket) {}

  // Until something fails, which the link is told.
  void Run(int stop) {
    Status status;
    while (status.ok() && !ended_) {
      const bool full = under_way_.size() >= kMaxUnderWay ||
                        bytes_under_way_ >= kMaxBytesUnderWay;
      std::array<pollfd, 3> ready = {
          pollfd{socket_, static_cast<short>(full ? 0 : POLLIN), 0},
          pollfd{publisher_.event_fd(), POLLIN, 0}, pollfd{stop, POLLIN, 0}};
      if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
      if (ready[2].revents != 0) return;
      if (ready[1].revents != 0) status = Acknowledge();
      if (!status.ok() || ready[0].revents == 0) continue;
      if (full) return;  // it hung up
      status = ReadSome();
    }
    if (!status.ok()) {
      Say({.type = net::ReplyType::kRefuse,
           .reason = status.code() == StatusCode::kSystem
                         ? net::RefuseReason::kClosing
                         : net::RefuseReason::kBadData,
           .text = status.message()});
    }
  }

 private:
  struct UnderWay {
    uint64_t next = 0;  // number after the block
    uint64_t bytes = 0;
  };

  void Say(net::Reply reply) {
    std::string text = net::EncodeReply(reply);
    std::string_view left = text;
    while (!left.empty()) {
      const ssize_t n = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        ended_ = true;
        return;
      }
      left.remove_prefix(static_cast<size_t>(n));
    }
  }

  Status ReadSome() {
    const size_t had = input_.size();
    input_.resize(had + kReadBytes);
    const ssize_t n = ::recv(socket_, input_.data() + had, kReadBytes, 0);
    input_.resize(had + static_cast<size_t>(n > 0 ? n : 0));
    if (n <= 0) {
      ended_ = n == 0 || (errno != EINTR && errno != EAGAIN);
      // The link ends when it has heard of all; until then it reads.
      return Status::Ok();
    }
    size_t at = 0;
    Status status = TakeAll(&at);
    input_.erase(input_.begin(), input_.begin() + static_cast<ptrdiff_t>(at));
    return status;
  }

  Status TakeAll(size_t* at) {
    for (;;) {
      const ByteSpan rest = ByteSpan(input_).subspan(*at);
      const Result<size_t> taken = hello_ ? TakeFrame(rest) : TakeHello(rest);
      if (!taken.ok()) return taken.status();
      if (*taken == 0) return Status::Ok();
      *at += *taken;
    }
  }

  // How many bytes were taken; 0: it is not there as a whole.
  Result<size_t> TakeHello(ByteSpan bytes) {
    if (bytes.size() < 12) return 0;
    const Result<size_t> length = net::HelloLength(bytes.first(12));
    if (!length.ok()) return length.status();
    if (bytes.size() < *length) return 0;
    Result<net::Hello> hello = net::DecodeHello(bytes.first(*length));
    if (!hello.ok()) return hello.status();
    const Result<format::Preamble> preamble =
        format::DecodePreamble(AsBytes(hello->preamble));
    if (!preamble.ok()) return preamble.status();
    if (preamble->chain.starts_with(kLinesChain) != spec_.lines) {
      return Status::Invalid(
          spec_.lines ? "what lies here is a trace, and no lines of a feed: "
                        "give the feed a spill directory of its own"
                      : "what lies here are lines of a feed, and no trace: "
                        "give the trace a spill directory of its own");
    }
    hello_ = *std::move(hello);
    const size_t before = spec_.lines ? 0 : hello_->preamble.size();
    const size_t most = publisher_.max_message();
    max_frame_ = most > before ? most - before : 0;
    Say({.type = net::ReplyType::kWelcome,
         .max_frame = static_cast<uint32_t>(max_frame_)});
    return *length;
  }

  Result<size_t> TakeFrame(ByteSpan bytes) {
    if (bytes.size() < format::kFrameHeaderBytes) return 0;
    format::FrameHeader header;
    if (!format::DecodeFrameHeader(bytes.first<format::kFrameHeaderBytes>(),
                                   &header)) {
      return Status::Corrupt("the driver sent what is no block");
    }
    // Before any of it is kept: a driver keeps to what it was told.
    const size_t size = format::kFrameHeaderBytes + header.payload_bytes;
    if (size > max_frame_) {
      return Status::Corrupt("the driver sent a block of " +
                             std::to_string(size) + " bytes, of at most " +
                             std::to_string(max_frame_));
    }
    if (bytes.size() < size) return 0;
    const ByteSpan frame = bytes.first(size);
    if (!format::FrameAt(frame, hello_->serial)) {
      return Status::Corrupt("the driver sent a damaged block");
    }
    const std::string id = format::SerialText(header.serial) + '-' +
                           std::to_string(header.sequence);
    Status status;
    if (spec_.lines) {
      status = publisher_.Publish(id, frame.subspan(format::kFrameHeaderBytes));
    } else {
      // A trace of one block: whoever gets it needs nothing else to know whose
      // it is.
      message_.assign(hello_->preamble);
      message_ += AsText(frame);
      status = publisher_.Publish(id, AsBytes(message_));
    }
    if (!status.ok()) return status;
    under_way_.push_back({header.sequence + 1, size});
    bytes_under_way_ += size;
    return size;
  }

  Status Acknowledge() {
    const Result<uint64_t> all = publisher_.Acknowledged();
    if (!all.ok()) return all.status();
    uint64_t next = 0;
    for (; acknowledged_ < *all && !under_way_.empty(); ++acknowledged_) {
      next = under_way_.front().next;
      bytes_under_way_ -= under_way_.front().bytes;
      under_way_.pop_front();
    }
    if (next != 0) Say({.type = net::ReplyType::kAck, .next = next});
    return Status::Ok();
  }

  const BrokerSpec& spec_;
  Publisher& publisher_;
  const int socket_;
  std::vector<std::byte> input_;
  std::string message_;
  std::optional<net::Hello> hello_;
  size_t max_frame_ = 0;            // as the link was told
  std::deque<UnderWay> under_way_;  // published, in order
  uint64_t bytes_under_way_ = 0;
  uint64_t acknowledged_ = 0;
  bool ended_ = false;
};

// Our end of a connection with the link, whose end must not block.
Result<UniqueFd> MakePair(UniqueFd* theirs) {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Status::System(errno, "connecting");
  }
  theirs->Reset(ends[1]);
  ::fcntl(theirs->get(), F_SETFL, O_NONBLOCK);
  return UniqueFd(ends[0]);
}

[[noreturn]] void RunCourier(UniqueFd socket, const BrokerSpec& spec) {
  uint32_t request;
  while (TakeDial(socket.get(), &request)) {
    auto publisher = MakePublisher(spec);
    if (!publisher.ok()) {
      AnswerDial(socket.get(), request, publisher.status());
      continue;
    }
    UniqueFd theirs;
    Result<UniqueFd> ours = MakePair(&theirs);
    if (!ours.ok()) {
      AnswerDial(socket.get(), request, ours.status());
      continue;
    }
    AnswerDial(socket.get(), request, std::move(theirs));
    // The next request, or the driver's end, ends the conversation.
    Convey(spec, **publisher, *std::move(ours), socket.get());
  }
  ::_exit(0);
}

}  // namespace

void Convey(const BrokerSpec& spec, Publisher& publisher, UniqueFd socket,
            int stop) {
  Conversation(spec, publisher, socket.get()).Run(stop);
}

Result<UniqueFd> ForkCourier(BrokerSpec spec) {
  spec.MakeAbsolute();
  return ForkHelper("tracefs-courier", spec.Name(), [&](UniqueFd socket) {
    RunCourier(std::move(socket), spec);
  });
}

}  // namespace tracefs
