#include "tracefs/reader/event_filter.h"

#include <utility>

namespace tracefs::reader {

Result<std::unique_ptr<EventFilter>> EventFilter::Compile(
    std::string_view text, std::string_view origin) {
  std::unique_ptr<EventFilter> made(new EventFilter);
  Result<Filter> filter = Filter::Compile(text, {.file = origin},
                                          SystemNameService(), made->names_);
  if (!filter.ok()) return filter.status();
  made->filter_.emplace(*std::move(filter));
  for (size_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    const FilterNeeds needs = made->filter_->Needs(op);
    const uint64_t bit = uint64_t{1} << i;
    if (needs.constant != Verdict::kDrop) made->wanted_ops_ |= bit;
    if (needs.constant == Verdict::kKeep) made->whole_ops_ |= bit;
    made->asks_for_ancestors_ |= needs.ancestors;
  }
  return made;
}

}  // namespace tracefs::reader
