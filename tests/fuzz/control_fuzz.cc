// Any bytes as a line of the control protocol, from a client to the mount and
// back: a request, an answer, or an error in words.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/structured.h"
#include "tracefs/control/answer.h"
#include "tracefs/control/request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  tracefs::ControlRequest request;
  const tracefs::Status status = tracefs::ControlRequest::Parse(line, &request);
  if (status.ok() && request.command.empty()) abort();
  if (!status.ok() && status.message().empty()) abort();
  // What the mount would say comes back as it was.
  const auto echoed =
      tracefs::ParseAnswer(tracefs::ErrorLine(request.id, status));
  if (!status.ok() && (!echoed.ok() || echoed->status.code() != status.code() ||
                       echoed->id != request.id)) {
    abort();
  }
  const auto answer = tracefs::ParseAnswer(line);
  if (!answer.ok() && answer.status().message().empty()) abort();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  return tracefs::fuzz::MutateText(data, size, max, seed);
}
