#include "drivers/output/device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "drivers/output/trace_file.h"
#include "tracefs/base/notice.h"
#include "tracefs/format/constants.h"

namespace tracefs {
namespace {

// What FINAL and the terminator may need.
constexpr uint64_t kDeviceFinalReserve = 64 * 1024;
constexpr std::array<std::byte, format::kFrameHeaderBytes> kTerminator{};

std::string QuotedDevice(const std::string& path) {
  return "device '" + path + "'";
}

class Device final : public OutputDriver {
 public:
  Device(DeviceOptions options, UniqueFd fd, uint64_t bytes)
      : options_(std::move(options)),
        file_(std::move(fd), QuotedDevice(options_.path)),
        bytes_(bytes) {}

  Status Initialize(const TraceIdentity& identity) override {
    full_ = identity.full;
    if (Status s = CheckRoom(identity.preamble.size() + kDeviceFinalReserve);
        !s.ok()) {
      return s;
    }
    return file_.AppendAndEnd({AsBytes(identity.preamble)}, kTerminator);
  }

  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo& info) override {
    Status status = CheckRoom(frame_header.size() + payload.size() +
                              (info.last ? 0 : kDeviceFinalReserve));
    if (status.ok()) {
      status = file_.AppendAndEnd({frame_header, payload}, kTerminator);
    }
    if (info.under_way != 0 && full_) {
      full_(!CheckRoom(info.under_way + kDeviceFinalReserve).ok());
    }
    if (!status.ok() && !std::exchange(reported_, true)) {
      Notify(NoticeId::kOutputFailed,
             status.message() + "; events are lost and counted in the trace");
    }
    return status;
  }

  Status Flush() override { return Status::Ok(); }
  Status Release() override { return file_.Close(/*durable=*/true); }
  size_t PreferredBlockSize() const override { return options_.buffer_bytes; }

 private:
  Status CheckRoom(uint64_t more) const {
    if (file_.size() + more + kTerminator.size() <= bytes_) {
      return Status::Ok();
    }
    return Status::System(ENOSPC, QuotedDevice(options_.path));
  }

  const DeviceOptions options_;
  TraceFile file_;
  const uint64_t bytes_;  // of the device
  OutputFull full_;
  bool reported_ = false;
};

}  // namespace

Result<UniqueFd> DeviceDriver::Open(const DeviceOptions& options) {
  // O_EXCL of a block device: not while something is mounted from it.
  UniqueFd fd(::open(options.path.c_str(), O_WRONLY | O_EXCL | O_NONBLOCK |
                                               O_CLOEXEC | O_NOCTTY |
                                               (options.sync ? O_DSYNC : 0)));
  if (!fd) {
    const int error = errno;
    return Status::System(
        error, QuotedDevice(options.path) +
                   (error == EBUSY ? " (mounted, or in other use)" : ""));
  }
  return fd;
}

Result<std::unique_ptr<OutputDriver>> DeviceDriver::Create(
    DeviceOptions options, UniqueFd fd) {
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) {
    return Status::System(errno, QuotedDevice(options.path));
  }
  if (!S_ISBLK(st.st_mode)) {
    return Status::Invalid("'" + options.path +
                           "' is no block device; for a file write file = \"" +
                           options.path + "\"");
  }
  const off_t bytes = ::lseek(fd.get(), 0, SEEK_END);
  if (bytes < 0) return Status::System(errno, QuotedDevice(options.path));
  return std::unique_ptr<OutputDriver>(std::make_unique<Device>(
      std::move(options), std::move(fd), static_cast<uint64_t>(bytes)));
}

}  // namespace tracefs
