// Fuzz target: what Tracefs wrote for itself, and finds again where somebody
// else may have been: plans and digests of replays, spilled frames, the state
// of signed configs, keys, certificates, what helpers are told. The first byte
// says which; the rest is text or bytes of it.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fuzz/structured.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/broker/spec.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/format/frame_scan.h"
#include "tracefs/net/address.h"
#include "tracefs/net/tls.h"
#include "tracefs/replay/action.h"
#include "tracefs/replay/digest.h"
#include "tracefs/replay/plan_file.h"
#include "tracefs/signed/config_folder.h"
#include "tracefs/signed/signed_config.h"

namespace {

using namespace tracefs;  // NOLINT: a fuzz target

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequireText(const Status& status) {
  Require(status.ok() || !status.message().empty());
}

UniqueFd InMemory(std::string_view bytes) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  Require(WriteAll(fd.get(), AsBytes(bytes), "memory").ok());
  return fd;
}

void Actions(std::string_view bytes) {
  replay::Action action;
  size_t size = 0;
  for (ByteSpan left = AsBytes(bytes); !left.empty();) {
    const Status status = replay::DecodeAction(left, &action, &size);
    RequireText(status);
    if (!status.ok()) return;
    Require(size != 0 && size <= left.size());
    std::vector<std::byte> again;
    replay::EncodeAction(action, &again);
    replay::Action echo;
    size_t echoed = 0;
    Require(replay::DecodeAction(again, &echo, &echoed).ok());
    left = left.subspan(size);
  }
}

void Entries(std::string_view bytes) {
  for (const bool is_path : {false, true}) {
    replay::TreeEntry entry;
    size_t size = 0;
    for (ByteSpan left = AsBytes(bytes); !left.empty();
         left = left.subspan(size)) {
      const Status status = replay::DecodeEntry(left, is_path, &entry, &size);
      RequireText(status);
      if (!status.ok()) break;
      Require(size != 0 && size <= left.size());
    }
  }
  replay::InitialData data;
  size_t size = 0;
  for (ByteSpan left = AsBytes(bytes); !left.empty();
       left = left.subspan(size)) {
    if (!replay::DecodeInitialData(left, &data, &size).ok()) break;
    Require(size != 0 && size <= left.size());
  }
}

// The checksums of a plan's chunks put right.
std::string Repaired(std::string_view bytes) {
  constexpr size_t kHead = 16;
  std::string plan(bytes);
  size_t at = replay::PlanWriter::kHeaderBytes;
  while (at + kHead <= plan.size()) {
    const size_t size = LoadLe<uint32_t>(plan.data() + at + 8);
    if (size > plan.size() - at - kHead) break;
    const std::string_view chunk =
        std::string_view(plan).substr(at + kHead, size);
    StoreLe<uint32_t>(plan.data() + at + 12, Crc32c(AsBytes(chunk)));
    at += kHead + size;
  }
  return plan;
}

void PlanFile(std::string_view bytes) {
  const UniqueFd fd = InMemory(Repaired(bytes));
  RequireText(replay::PlanReader::ReadHeader(fd.get()).status());
  for (uint8_t kind = 0; kind < 6; ++kind) {
    replay::PlanReader reader(fd.get(), static_cast<replay::ChunkKind>(kind));
    for (;;) {
      const auto chunk = reader.Next();
      RequireText(chunk.status());
      if (!chunk.ok() || !*chunk) break;
      Actions(AsText(**chunk));
      Entries(AsText(**chunk));
    }
  }
}

void Frames(std::string_view bytes) {
  format::Serial serial{};
  if (bytes.size() >= 32) {
    std::copy_n(AsBytes(bytes).begin() + 16, serial.size(), serial.begin());
  }
  const UniqueFd fd = InMemory(bytes);
  for (const bool check : {false, true}) {
    format::FrameScan scan(fd.get(), 0, bytes.size(), serial, 0);
    uint64_t at = 0;
    while (true) {
      const auto step = scan.Next(check);
      Require(step.ok());
      if (*step != format::FrameScan::Step::kFrame) break;
      Require(scan.at() > at && scan.at() <= bytes.size());
      at = scan.at();
    }
  }
}

void SignedConfigs(std::string_view bytes) {
  ConfigRefusal why{};
  RequireText(VerifyConfig(bytes, {}, 1'800'000'000, &why).status());
  const size_t one = bytes.find('\n');
  const size_t two = one == bytes.npos ? one : bytes.find('\n', one + 1);
  if (two != bytes.npos) {
    RequireText(ParseConfigFacts(bytes.substr(0, one),
                                 bytes.substr(one + 1, two - one - 1),
                                 bytes.substr(two + 1))
                    .status());
  }
  const UniqueFd fd = InMemory(bytes);
  RequireText(ReadTaken("/proc/self/fd/" + std::to_string(fd.get())).status());
}

void Keys(std::string_view bytes) {
  KeyEntry entry{KeyKind::kSecret, SecretKey()};
  if (ParseKeyLine(bytes, &entry)) {
    KeyEntry again{KeyKind::kSecret, SecretKey()};
    Require(ParseKeyLine(KeyLine(entry.kind, entry.key.get()), &again));
    Require(again.kind == entry.kind);
  }
  RequireText(ParseKeySource(bytes).status());
}

void Certificates(std::string_view bytes) {
  const UniqueFd fd = InMemory(bytes);
  ::fchmod(fd.get(), 0600);
  const net::TlsFiles files = {.ca = "ca",
                               .cert = "cert",
                               .key = "key",
                               .given = {fd.get(), fd.get(), fd.get()}};
  for (const auto role :
       {net::TlsContext::Role::kSender, net::TlsContext::Role::kReceiver}) {
    RequireText(net::TlsContext::Create(role, files).status());
  }
}

void Addresses(std::string_view text) {
  const auto spec = BrokerSpec::Parse(text);
  RequireText(spec.status());
  if (spec.ok()) {
    const std::string said = spec->Text();
    const auto again = BrokerSpec::Parse(said);
    Require(again.ok() && again->Text() == said);
    RequireText(spec->CheckSecrets("say so"));
  }
  RequireText(ParseServers(text).status());
  RequireText(net::ParseListenAddress(std::string(text)).status());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  switch (data[0]) {
    case 'A':
      Actions(rest);
      break;
    case 'E':
      Entries(rest);
      break;
    case 'P':
      PlanFile(rest);
      break;
    case 'D':
      if (const auto digest = replay::ParseDigest(rest); digest.ok()) {
        const auto again = replay::ParseDigest(digest->Text());
        Require(again.ok() && again->Text() == digest->Text());
      }
      break;
    case 'F':
      Frames(rest);
      break;
    case 'S':
      SignedConfigs(rest);
      break;
    case 'K':
      Keys(rest);
      break;
    case 'C':
      Certificates(rest);
      break;
    case 'B':
      Addresses(rest);
      break;
    default:
      break;
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  // Which it is stays; texts change by their words.
  const bool text =
      size > 0 && std::string_view("DSKCB").find(static_cast<char>(data[0])) !=
                      std::string_view::npos;
  if (size < 2 || max < 2) return LLVMFuzzerMutate(data, size, max);
  const size_t rest = text && seed % 3 != 0
                          ? fuzz::MutateText(data + 1, size - 1, max - 1, seed)
                          : LLVMFuzzerMutate(data + 1, size - 1, max - 1);
  return 1 + rest;
}
