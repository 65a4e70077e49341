// Distinct: values and how often each came, bounded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tracefs::anonymize {

class Distinct {
 public:
  void Add(std::string_view value) {
    const auto found = counts_.find(std::string(value));
    if (found != counts_.end()) {
      ++found->second;
    } else if (counts_.size() < kMaxDistinct) {
      counts_.emplace(value, 1);
    } else {
      full_ = true;
    }
  }
  bool Has(std::string_view value) const {
    return counts_.count(std::string(value)) != 0;
  }
  size_t size() const { return counts_.size(); }
  bool full() const { return full_; }
  size_t Singletons() const {
    return static_cast<size_t>(
        std::count_if(counts_.begin(), counts_.end(),
                      [](const auto& c) { return c.second == 1; }));
  }
  const std::unordered_map<std::string, uint64_t>& counts() const {
    return counts_;
  }

 private:
  static constexpr size_t kMaxDistinct = 1'000'000;

  std::unordered_map<std::string, uint64_t> counts_;
  bool full_ = false;
};

}  // namespace tracefs::anonymize
