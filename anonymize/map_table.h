// MapTables: values numbered by order of appearance, for the action `map`. One
// table a domain. The only state that grows with a trace, hence its limit.
// Not for two threads at a time: who maps goes through blocks in their order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tracefs/base/status.h"

namespace tracefs::anonymize {

class MapTables {
 public:
  // In all tables together: about a gigabyte.
  static constexpr size_t kMaxValues = size_t{8} << 20;

  // The number of a value: 1, 2, 3, …
  Result<uint64_t> NumberOf(const std::string& domain, std::string_view value) {
    auto& table = tables_[domain];
    const auto [at, added] =
        table.try_emplace(std::string(value), table.size() + 1);
    if (added && ++values_ > kMaxValues) {
      return Status::Invalid("domain " + domain +
                             " has too many values for 'map'; use fpe, encrypt "
                             "or hmac, which keep no table");
    }
    return at->second;
  }

 private:
  std::map<std::string, std::unordered_map<std::string, uint64_t>> tables_;
  size_t values_ = 0;
};

}  // namespace tracefs::anonymize
