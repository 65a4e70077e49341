#include "tracefs/query/block_requests.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>

#include "tracefs/base/clock.h"
#include "tracefs/base/text.h"

namespace tracefs::query {
namespace {

constexpr uint64_t kSectorBytes = 512;
constexpr size_t kMostBlockDevices = 256;
// Of a device, for one operation.
constexpr size_t kMostLookedAt = size_t{1} << 16;
// No line of the kernel's is as long.
constexpr size_t kMostLineBytes = 4096;

// The number at the front of `text`, taken off it.
std::optional<uint64_t> TakeCount(std::string_view& text) {
  uint64_t number = 0;
  return TakeDecimal(text, &number) ? std::optional(number) : std::nullopt;
}

// "1234.567890" or with nine digits behind the point.
std::optional<uint64_t> Nanoseconds(std::string_view text) {
  const std::optional<uint64_t> seconds = TakeCount(text);
  if (!seconds || *seconds > UINT64_MAX / kNsPerSecond - 1 ||
      !TakePrefix(text, ".")) {
    return std::nullopt;
  }
  if (text.empty() || text.size() > 9) return std::nullopt;
  size_t digits = text.size();
  std::optional<uint64_t> fraction = TakeCount(text);
  if (!fraction || !text.empty()) return std::nullopt;
  for (; digits < 9; ++digits) *fraction *= 10;
  return *seconds * kNsPerSecond + *fraction;
}

// What stands before the name of the event ends with its time and a colon.
std::optional<uint64_t> TimeBefore(std::string_view head) {
  if (head.ends_with("block:")) head.remove_suffix(6);
  head = Trim(head);
  if (!head.ends_with(':')) return std::nullopt;
  head.remove_suffix(1);
  const size_t begin = head.find_last_of(" \t");
  return Nanoseconds(begin == head.npos ? head : head.substr(begin + 1));
}

}  // namespace

void BlockRequests::Take(std::string_view line) {
  constexpr std::string_view kIssue = "block_rq_issue: ";
  constexpr std::string_view kComplete = "block_rq_complete: ";
  if (line.size() > kMostLineBytes) return;
  size_t at = line.find(kIssue);
  const bool begins = at != line.npos;
  if (!begins) at = line.find(kComplete);
  if (at == line.npos) return;
  const std::optional<uint64_t> time = TimeBefore(line.substr(0, at));
  std::string_view rest =
      line.substr(at + (begins ? kIssue : kComplete).size());
  // "7,1 WS 4096 () 294914 + 8 …", of the end without the 4096.
  const std::optional<uint64_t> high = TakeCount(rest);
  if (!time || !high || !TakePrefix(rest, ",")) return;
  const std::optional<uint64_t> low = TakeCount(rest);
  const size_t command = rest.find(") ");
  if (!low || command == rest.npos) return;
  rest.remove_prefix(command + 2);
  const std::optional<uint64_t> sector = TakeCount(rest);
  if (!sector || !TakePrefix(rest, " + ")) return;
  const std::optional<uint64_t> sectors = TakeCount(rest);
  constexpr uint64_t kMostSectors = UINT64_MAX / kSectorBytes / 2;
  if (!sectors || *high > UINT32_MAX || *low > UINT32_MAX) return;
  BlockRequest request;
  // A flush is told with sector -1 when it ends.
  const bool flush = *sectors == 0 && (begins || *sector > kMostSectors);
  if (!flush && (*sector > kMostSectors || *sectors > kMostSectors)) return;
  if (!flush) request = {*sector * kSectorBytes, *sectors * kSectorBytes, 0, 0};
  const uint64_t device =
      makedev(static_cast<uint32_t>(*high), static_cast<uint32_t>(*low));
  if (begins) {
    request.issued_ns = *time;
    Issue(device, request);
  } else {
    request.done_ns = *time;
    // The second end of a write with a flush: no part of it is left.
    if (request.bytes == 0 && !flush) return;
    Complete(device, request);
  }
}

void BlockRequests::Issue(uint64_t device, const BlockRequest& request) {
  const bool known = by_device_.contains(device);
  if (size_ >= kMost || (!known && by_device_.size() >= kMostBlockDevices)) {
    ++no_room_;
    return;
  }
  ++size_;
  by_device_[device].under_way.emplace(
      request.bytes == 0 ? UINT64_MAX : request.begin, request);
}

void BlockRequests::Complete(uint64_t device, const BlockRequest& request) {
  const auto of = by_device_.find(device);
  if (of == by_device_.end()) {
    ++not_whole_;
    return;
  }
  auto& under_way = of->second.under_way;
  const auto found =
      under_way.find(request.bytes == 0 ? UINT64_MAX : request.begin);
  if (found == under_way.end() || found->second.issued_ns > request.done_ns) {
    ++not_whole_;
    return;
  }
  found->second.done_ns = request.done_ns;
  of->second.done.push_back(found->second);
  under_way.erase(found);
}

void BlockRequests::Finish() {
  for (auto& [number, device] : by_device_) {
    not_whole_ += device.under_way.size();
    device.under_way.clear();
    std::ranges::sort(device.done, {}, &BlockRequest::issued_ns);
    uint64_t latest = 0;
    for (const BlockRequest& request : device.done) {
      latest = std::max(latest, request.done_ns);
      device.latest.push_back(latest);
    }
  }
}

Status BlockRequests::Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Status::System(errno, "requests '" + path + "'");
  std::string line;
  char c;
  // By hand: a line may be as long as the file.
  while (in.get(c)) {
    if (c == '\n') {
      Take(line);
      line.clear();
    } else if (line.size() <= kMostLineBytes) {
      line += c;
    }
  }
  Take(line);
  Finish();
  if (in.bad()) return Status::System(EIO, "requests '" + path + "'");
  return Status::Ok();
}

bool BlockRequests::ForEach(
    uint64_t device, uint64_t from_ns, uint64_t to_ns,
    const std::function<void(const BlockRequest&)>& use) const {
  const auto of = by_device_.find(device);
  if (of == by_device_.end()) return true;
  const auto& done = of->second.done;
  const auto end =
      std::ranges::lower_bound(done, to_ns, {}, &BlockRequest::issued_ns);
  auto i = static_cast<size_t>(end - done.begin());
  for (size_t looked = 0; i > 0 && of->second.latest[i - 1] > from_ns; --i) {
    if (++looked > kMostLookedAt) return false;
    if (done[i - 1].done_ns > from_ns) use(done[i - 1]);
  }
  return true;
}

}  // namespace tracefs::query
