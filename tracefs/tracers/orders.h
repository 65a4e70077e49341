// Orders: what clients have had changed about the tracers of a mount since it
// began, kept where a later daemon finds it and does it again
// (tracefs/survive/area.h).
//
// A config is kept as text, and parsed again; of the files that its stages were
// given a copy of each descriptor stays open. An order is there as a whole or
// not at all: it is written to a place of its own, and counts from one word on.
// Nothing in it is trusted: a later daemon reads it as it reads the request of
// a client, and in its sandbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "config/config.h"
#include "filters/input/known_names.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/pipeline/stages.h"
#include "tracefs/survive/area.h"
#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/registry.h"

namespace tracefs {

// What is to be done again about one tracer.
struct Order {
  uint32_t id = 0;
  bool removed = false;
  bool suspended = false;
  // For an added tracer: its config, the name that messages use for it, and
  // what else came with it. Empty if the mount began with the tracer.
  std::string config = {};
  std::string file = {};
  KnownNames names = {};
  format::Serial serial{};
  // Instead of that of its config.
  std::optional<std::string> filter = {};
  KnownNames filter_names = {};
  // What the tracers of its rules' actions are (TargetsOf): they are of a file
  // that is not kept. Of a tracer that the mount began with: if not as there.
  std::vector<uint32_t> targets = {};

  // As bytes; and from bytes that may be anything: none if they are not that.
  std::string Encode() const;
  static std::optional<Order> Decode(std::string_view bytes);
};

// Threads: any.
class Orders {
 public:
  // `area` outlives this.
  explicit Orders(survive::Area& area) : area_(area) {}

  // The tracers of the config that the mount began with: where each keeps how
  // far its trace is. In each daemon, before all else.
  void Begin(std::vector<TracerPlan>* plans);

  // Copies of what a client has sent, before it is used up.
  static Result<std::vector<UniqueFd>> Copies(std::span<const UniqueFd> files);
  // Tracers that a client adds, planned from `config` and not started: they get
  // a place each for how far their traces are. kInvalid if there is none.
  // Nobody knows of them before Commit; Drop if they could not be started.
  Status Prepare(const Config& config, const KnownNames& names,
                 std::vector<UniqueFd> copies, std::vector<TracerPlan>* plans);
  // `stays_shut`: one of all there are lets nothing be done unrecorded.
  void Commit(std::span<const uint32_t> ids, bool stays_shut);
  void Drop(std::span<const uint32_t> ids);

  // Changes the order about a tracer, and then does it; undone where that
  // fails. One that outlives no daemon (a client that listens) is only done.
  // kSystem if there is no room for the order.
  Status Change(uint32_t id, const std::function<void(Order&)>& change,
                const std::function<Status()>& act);
  // It has ended: nothing of it is needed any more.
  void Forget(uint32_t id);

  // In a later daemon: the tracers that clients have added, planned again. One
  // that cannot be is told in the log and left out, unless operations are to
  // fail that it cannot record: then its error is returned.
  Result<std::vector<TracerPlan>> PlanAgain(NameTable& names);
  // Once all are started: filters, pauses and ends that had been asked for.
  Status DoAgain(TracerRegistry& tracers, NameTable& names);

  // The id of the next tracer, which no other has had.
  uint32_t next_id() const { return area_.header().next_tracer.load(); }

 private:
  struct Kept {
    size_t slot = 0;
    Order order;
  };

  survive::OrderRecord& RecordOf(size_t slot) {
    return area_.header().orders[slot];
  }
  bool IsAdded(size_t slot) const {
    return (area_.header().added.load() >> slot & 1) != 0;
  }
  Status Write(size_t slot, const Order& order);
  std::optional<Order> Read(size_t slot);
  void Free(size_t slot);
  Result<std::vector<TracerPlan>> PlanOne(const Order& order, size_t slot,
                                          NameTable& names);

  survive::Area& area_;
  std::mutex mu_;                  // guards what follows
  size_t begun_with_ = 0;          // slots of these are never of others
  std::map<uint32_t, Kept> kept_;  // by id
  std::vector<bool> taken_ =
      std::vector<bool>(std::tuple_size_v<decltype(survive::Header::orders)>);
};

}  // namespace tracefs
