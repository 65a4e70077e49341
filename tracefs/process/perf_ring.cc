#include "tracefs/process/perf_ring.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tracefs {
namespace {

constexpr size_t kFewestPages = 8;

}  // namespace

void RingBytes::Copy(uint64_t position, std::span<std::byte> out) const {
  if (out.size() > bytes_.size()) out = out.first(bytes_.size());
  const size_t at = position & (bytes_.size() - 1);
  const size_t first = std::min(out.size(), bytes_.size() - at);
  std::memcpy(out.data(), bytes_.data() + at, first);
  std::memcpy(out.data() + first, bytes_.data(), out.size() - first);
}

bool PerfSample::Parse(ByteSpan record, PerfSample* sample) {
  ByteCursor in(record);
  const auto pid = in.TakeLe<uint32_t>();
  const auto tid = in.TakeLe<uint32_t>();
  const auto time = in.TakeLe<uint64_t>();
  const auto raw_size = in.TakeLe<uint32_t>();
  if (!pid || !tid || !time || !raw_size) return false;
  const auto raw = in.Take(*raw_size);
  if (!raw) return false;
  *sample = {.pid = *pid,
             .tid = *tid,
             .time_ns = *time,
             .raw = *raw,
             .rest = record.last(in.left())};
  if (const auto abi = in.TakeLe<uint64_t>()) sample->abi = *abi;
  return true;
}

Result<PerfRing> PerfRing::Map(std::vector<UniqueFd> files, size_t pages,
                               bool in_order) {
  PerfRing ring;
  ring.files_ = std::move(files);
  if (ring.files_.empty()) return Status::Invalid("no tracepoints");
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  // Where we may write, we say how far we have read, and the kernel keeps what
  // we have not.
  const int access = in_order ? PROT_READ | PROT_WRITE : PROT_READ;
  void* map = MAP_FAILED;
  for (;; pages /= 2) {
    ring.map_bytes_ = (pages + 1) * page;
    map = ::mmap(nullptr, ring.map_bytes_, access, MAP_SHARED,
                 ring.files_[0].get(), 0);
    if (map != MAP_FAILED || errno != EPERM || pages <= kFewestPages) break;
  }
  if (map == MAP_FAILED) {
    return Status::System(errno,
                          "memory for tracepoints; raise RLIMIT_MEMLOCK or "
                          "/proc/sys/kernel/perf_event_mlock_kb");
  }
  ring.map_ = map;
  ring.bytes_ =
      RingBytes({static_cast<const std::byte*>(map) + page, pages * page});
  for (size_t i = 1; i < ring.files_.size(); ++i) {
    if (::ioctl(ring.files_[i].get(), PERF_EVENT_IOC_SET_OUTPUT,
                ring.files_[0].get()) != 0) {
      return Status::System(errno, "one ring for several tracepoints");
    }
  }
  return ring;
}

Status PerfRing::ReplaceFirst(UniqueFd file) {
  if (::ioctl(file.get(), PERF_EVENT_IOC_SET_OUTPUT, files_[0].get()) != 0) {
    return Status::System(errno, "one ring for several tracepoints");
  }
  if (!instead_of_first_ &&
      ::ioctl(files_[0].get(), PERF_EVENT_IOC_DISABLE, 0) != 0) {
    return Status::System(errno, "a tracepoint that another takes over");
  }
  instead_of_first_ = std::move(file);
  return Status::Ok();
}

PerfRing::~PerfRing() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

uint64_t PerfRing::newest() const {
  const auto* page = static_cast<const perf_event_mmap_page*>(map_);
  return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

uint64_t PerfRing::Tail() const {
  return static_cast<const perf_event_mmap_page*>(map_)->data_tail;
}

void PerfRing::SetTail(uint64_t tail) {
  auto* page = static_cast<perf_event_mmap_page*>(map_);
  __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

}  // namespace tracefs
