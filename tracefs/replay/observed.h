// Observed: an operation as the plan's builder looks at it. Its views are those
// of the record it came from, or of the KeptObserved that holds it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/replay/tree_model.h"

namespace tracefs::replay {

struct Observed {
  const Event* event = nullptr;
  uint64_t sequence = 0;
  bool selected = true;
  bool marked = false;          // to be undone
  NodeId parent = kNoNode;      // of `name`
  NodeId new_parent = kNoNode;  // of `new_name`
  NodeId file = kNoNode;        // where it works on a file by number or handle
  std::string_view name;
  std::string_view new_name;
  std::string_view text;  // target, or name of an extended attribute
  ByteSpan data;
  bool has_data = false;  // `data` may be empty

  Op op() const { return event->op; }
  bool Has(Field f) const { return event->Has(f); }
  // 0 if it is not there.
  uint64_t Get(Field f) const { return event->GetOr0(f); }
  uint32_t Get32(Field f) const { return static_cast<uint32_t>(Get(f)); }
  uint32_t error() const { return Get32(Field::kErrno); }
  bool ok() const { return error() == 0; }
  uint64_t begin_ns() const { return Get(Field::kTime); }
  uint64_t end_ns() const { return begin_ns() + Get(Field::kLatency); }
};

// The same with what it views.
struct KeptObserved {
  explicit KeptObserved(const Observed& of)
      : event(*of.event),
        name(of.name),
        new_name(of.new_name),
        text(of.text),
        data(of.data.begin(), of.data.end()),
        seen(of) {
    seen.event = &event;
    seen.name = name;
    seen.new_name = new_name;
    seen.text = text;
    seen.data = data;
  }
  KeptObserved(const KeptObserved&) = delete;
  KeptObserved& operator=(const KeptObserved&) = delete;

  Event event;
  std::string name;
  std::string new_name;
  std::string text;
  std::vector<std::byte> data;
  Observed seen;
};

}  // namespace tracefs::replay
