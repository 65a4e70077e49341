#include "tracefs/reader/trace_origins.h"

#include "tracefs/reader/trace_place.h"

namespace tracefs::reader {

// An empty name is no name.
uint32_t TraceOrigins::NumberOf(std::map<std::string, uint32_t>* known,
                                const std::string& name) {
  if (name.empty()) return ++last_;
  const auto [at, fresh] = known->try_emplace(name, last_ + 1);
  if (fresh) ++last_;
  return at->second;
}

format::TraceOrigin TraceOrigins::Of(const format::TraceHeader& header) {
  const std::string host(header.Get("host.name"));
  const std::string boot(header.Get("boot.id"));
  const std::string place = TracePlace(header).Text();
  const bool known = !host.empty();
  return {.machine = NumberOf(&machines_, known ? host + '\0' + boot : boot),
          .mount = NumberOf(
              &mounts_, known && !place.empty() ? host + '\0' + place : "")};
}

}  // namespace tracefs::reader
