// Operands: what an event is about, kept beyond the event.
#pragma once

#include <array>
#include <string>

#include "tracefs/event/event.h"

namespace tracefs {

// Copied from one event into another of the same request. The nodes are good
// while the kernel waits for the request's answer.
class Operands {
 public:
  explicit Operands(const Event& event) : event_(event) {
    for (size_t i = 0; i < texts_.size(); ++i) texts_[i] = event.*kTexts[i];
  }

  // What `event` knows itself, stays.
  void Into(Event& event) const {
    for (size_t i = 0; i < kNumericFieldCount; ++i) {
      const auto field = static_cast<Field>(i);
      if (event_.Has(field) && !event.Has(field)) {
        event.Set(field, event_.Get(field));
      }
    }
    event.node = event_.node;
    event.parent = event_.parent;
    event.new_parent = event_.new_parent;
    event.node_version = event_.node_version;
    event.parent_version = event_.parent_version;
    event.new_parent_version = event_.new_parent_version;
    event.rename_epoch = event_.rename_epoch;
    event.name_bits = event_.name_bits;
    event.name_generation = event_.name_generation;
    for (size_t i = 0; i < texts_.size(); ++i) event.*kTexts[i] = texts_[i];
  }

 private:
  static constexpr std::array kTexts = {&Event::name, &Event::new_name,
                                        &Event::target, &Event::xattr_name};

  Event event_;
  std::array<std::string, kTexts.size()> texts_;
};

}  // namespace tracefs
