// An output driver: the worked example of docs/extending.md. It hands the trace
// to a descriptor that was open before the program began: `pipe = 3`.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "drivers/output/rows.h"

namespace tracefs {
namespace {

class PipeDriver final : public OutputDriver {
 public:
  explicit PipeDriver(UniqueFd fd) : fd_(std::move(fd)) {}

  Status Initialize(const TraceIdentity& identity) override {
    return WriteAll(AsBytes(identity.preamble));
  }
  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo&) override {
    if (Status s = WriteAll(frame_header); !s.ok()) return s;
    return WriteAll(payload);
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override {
    fd_.Reset();
    return Status::Ok();
  }
  size_t PreferredBlockSize() const override { return 0; }

 private:
  Status WriteAll(ByteSpan bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Status::System(errno, "pipe");
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return Status::Ok();
  }

  UniqueFd fd_;
};

Result<MadeOutputDriver> Make(const ConfigEntry& entry, OutputDriverInputs) {
  UniqueFd fd(::dup(static_cast<int>(entry.value.number)));
  if (!fd) return Status::System(errno, "pipe = " + entry.value.text);
  return MadeOutputDriver{.driver =
                              std::make_unique<PipeDriver>(std::move(fd))};
}

}  // namespace

OutputDriverRow PipeRow() {
  return {.entry = {.name = "pipe",
                    .role = EntryRole::kDriver,
                    .value = {.type = ValueType::kCount,
                              .required = true,
                              .max = 1023}},
          .help = "a descriptor that is open already",
          .make = &Make};
}

}  // namespace tracefs
