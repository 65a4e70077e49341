// A small world for filter tests: users, a tree of files with hard links,
// callers, and events on them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/event/event.h"

namespace tracefs::testing {

// Users root 0, alice 5, bob 1000; groups root 0, staff 1, users 100. "broken"
// cannot be looked up.
class FakeNames final : public NameService {
 public:
  Result<std::optional<uint32_t>> UserId(
      const std::string& name) const override;
  Result<std::optional<uint32_t>> GroupId(
      const std::string& name) const override;
};

// A tree of nodes 1 (the root) to 9, and what it counts.
class FilterWorld final : public EventResolver {
 public:
  FilterWorld();

  void ResolveCaller(Event& event) override;
  void ResolveAttributes(Event& event) override;
  bool LinkOf(uint64_t node, NodeLink* link) override;
  void ForEachName(uint64_t node, void* context,
                   void (*visit)(void* context,
                                 std::string_view name)) override;

  // An event of `op` when all is known: the fields its requests carry, some of
  // them missing at random, and a result.
  Event Random(Op op, std::mt19937& random);

  // The same operation while it has not run: without results and attributes,
  // and without the file where the operation finds or makes it.
  Event BeforeRun(const Event& event, std::mt19937& random);

  // Sets name_bits as the file system would.
  void SetNameBits(const NameTable& table, Event& event) const;

  uint64_t TypeOf(uint64_t node) const { return nodes_.at(node).type; }

  int callers_resolved = 0;
  int attributes_resolved = 0;

  // Thread 1000 + n is caller n; others are gone.
  std::vector<CallerInfo> callers;

 private:
  struct Node {
    uint64_t parent;
    std::vector<std::string> names;
    uint64_t type;
  };
  std::map<uint64_t, Node> nodes_;
};

}  // namespace tracefs::testing
