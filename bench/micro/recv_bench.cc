// One receiver, fed as fast as it takes: a trace of 210,000 operations (a
// compilation, all fields; sample_trace.h) over a Unix socket and over TCP, to
// files (acknowledged after fdatasync) and to JSON Lines on /dev/null. Sender
// and receiver share the processors. Baseline: the same bytes copied to a file
// and synced. Unit: operations per second.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <filesystem>
#include <thread>

#include "bench/micro/sample_trace.h"
#include "drivers/output/remote/connect.h"
#include "tracefs/net/wire.h"
#include "tracefs/recv/file_keeper.h"
#include "tracefs/recv/live_printer.h"
#include "tracefs/recv/receiver.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs::bench {
namespace {

struct Folder {
  Folder() {
    std::string name =
        std::filesystem::temp_directory_path() / "tracefs-bench-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd ready = {fd, POLLOUT, 0};
    ::poll(&ready, 1, -1);
    const ssize_t n =
        ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN) return false;
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Until the receiver ends the connection, which it does when all is
// acknowledged.
void AwaitEnd(int fd) {
  char bytes[4096];
  for (;;) {
    pollfd ready = {fd, POLLIN, 0};
    ::poll(&ready, 1, -1);
    const ssize_t n = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return;
  }
}

void Run(benchmark::State& state, net::Address address, bool live) {
  const std::string& trace = SampleTrace();
  const size_t preamble = *format::PreambleLength(AsBytes(trace).first(12));
  const std::string hello =
      net::EncodeHello({.preamble = trace.substr(0, preamble)});
  const Folder folder;
  FdOutput nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  for (auto _ : state) {
    state.PauseTiming();
    for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
      std::filesystem::remove(entry.path());
    }
    std::unique_ptr<Keeper> keeper =
        live ? MakeLivePrinter({}, nowhere)
             : *MakeFileKeeper({.directory = folder.path});
    if (address.is_unix()) address.host = folder.path + "/s";
    auto receiver = *Receiver::Create(
        {.listen = {address}, .limits = {}, .quiet = true}, *keeper);
    const auto where = *net::ParseListenAddress(receiver->addresses()[0]);
    const UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
    std::thread thread([&] { static_cast<void>(receiver->Run(stop.get())); });
    const UniqueFd fd = *ConnectTo(where, /*cancel=*/-1);
    state.ResumeTiming();
    SendAll(fd.get(), hello);
    pollfd answered = {fd.get(), POLLIN, 0};
    ::poll(&answered, 1, -1);
    SendAll(fd.get(), std::string_view(trace).substr(preamble));
    ::shutdown(fd.get(), SHUT_WR);
    AwaitEnd(fd.get());
    state.PauseTiming();
    const uint64_t one = 1;
    (void)!::write(stop.get(), &one, sizeof one);
    thread.join();
    receiver.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(kSampleOperations));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(trace.size()));
}

const net::Address kUnix{.transport = net::Transport::kUnix};
const net::Address kTcp{
    .transport = net::Transport::kTcp, .host = "127.0.0.1", .port = "0"};

void BM_ReceiveUnix(benchmark::State& state) { Run(state, kUnix, false); }
void BM_ReceiveTcp(benchmark::State& state) { Run(state, kTcp, false); }
void BM_ReceiveJsonLines(benchmark::State& state) { Run(state, kUnix, true); }
BENCHMARK(BM_ReceiveUnix)->UseRealTime();
BENCHMARK(BM_ReceiveTcp)->UseRealTime();
BENCHMARK(BM_ReceiveJsonLines)->UseRealTime();

void BM_CopyToFile(benchmark::State& state) {
  const std::string& trace = SampleTrace();
  const Folder folder;
  for (auto _ : state) {
    const UniqueFd fd(::open((folder.path + "/f").c_str(),
                             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    for (size_t at = 0; at < trace.size();) {
      const ssize_t n = ::write(fd.get(), trace.data() + at,
                                std::min<size_t>(1 << 18, trace.size() - at));
      if (n <= 0) return;
      at += static_cast<size_t>(n);
    }
    ::fdatasync(fd.get());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(kSampleOperations));
}
BENCHMARK(BM_CopyToFile)->UseRealTime();

}  // namespace
}  // namespace tracefs::bench
