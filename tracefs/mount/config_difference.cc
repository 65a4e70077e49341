#include "tracefs/mount/config_difference.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"
#include "tracefs/tracers/parts.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {
namespace {

struct Running {
  uint32_t id = 0;
  std::string filter;
  std::string rest;  // the text of all but the filter
  bool taken = false;
};

std::string WithoutFilter(TracerConfig tracer) {
  tracer.filter.clear();
  return ToText(tracer);
}

std::vector<Running> RunningOf(const TracerRegistry::Entries& entries) {
  std::vector<Running> all;
  for (const auto& [id, entry] : entries) {
    if (entry.kind != TracerKind::kConfig) continue;
    Running one{.id = id, .filter = "", .rest = ""};
    // It was read once, and is read again; otherwise it equals no other.
    const Result<Config> config =
        ParseConfig(entry.config, "running", FullSchema());
    if (config.ok() && config->tracers.size() == 1) {
      one.rest = WithoutFilter(config->tracers.front());
    }
    if (entry.filter) one.filter = Trim(entry.filter->text());
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

nlohmann::ordered_json DifferenceJson(const Config& wanted,
                                      const TracerRegistry::Entries& running) {
  using OrderedJson = nlohmann::ordered_json;
  std::vector<Running> all = RunningOf(running);
  OrderedJson kept = OrderedJson::array();
  OrderedJson filters = OrderedJson::array();
  OrderedJson removed = OrderedJson::array();
  // Tracers of the config by their number there, from 1: its text is the
  // client's own.
  OrderedJson added = OrderedJson::array();
  // What each tracer of the config is now; 0: nothing yet.
  std::vector<uint32_t> order(wanted.tracers.size());
  std::vector<size_t> unlike;
  const auto take = [&all](const std::string& rest, const std::string* filter) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Running& one) {
          return !one.taken && one.rest == rest &&
                 (filter == nullptr || one.filter == *filter);
        });
    if (found != all.end()) found->taken = true;
    return found;
  };
  for (size_t i = 0; i < wanted.tracers.size(); ++i) {
    const TracerConfig& tracer = wanted.tracers[i];
    const std::string filter(Trim(tracer.filter));
    const auto same = take(WithoutFilter(tracer), &filter);
    if (same == all.end()) {
      unlike.push_back(i);
    } else {
      kept.push_back(same->id);
      order[i] = same->id;
    }
  }
  for (const size_t i : unlike) {
    const auto like = take(WithoutFilter(wanted.tracers[i]), nullptr);
    if (like == all.end()) {
      added.push_back(i + 1);
    } else {
      filters.push_back({{"tracer", like->id}, {"as", i + 1}});
      order[i] = like->id;
    }
  }
  for (const Running& one : all) {
    if (!one.taken) removed.push_back(one.id);
  }
  return {{"kept", std::move(kept)},
          {"filters", std::move(filters)},
          {"added", std::move(added)},
          {"removed", std::move(removed)},
          {"order", std::move(order)}};
}

Result<std::vector<FileTracer>> TracersAmong(
    std::string_view ids, const TracerRegistry::Entries& running) {
  std::vector<FileTracer> tracers;
  while (!ids.empty()) {
    const std::string_view word = TakeUpTo(ids, ' ');
    const std::optional<uint64_t> id = ParseUnsigned(word);
    if (id && *id == 0) {
      tracers.push_back({});
      continue;
    }
    const auto found = id && *id <= UINT32_MAX
                           ? running.find(static_cast<uint32_t>(*id))
                           : running.end();
    if (found == running.end() || found->second.kind != TracerKind::kConfig) {
      return Status::Invalid("there is no tracer " + Quoted(word));
    }
    const Result<Config> config =
        ParseConfig(found->second.config, "running", FullSchema());
    if (!config.ok()) return config.status();
    tracers.push_back(FileTracerOf(config->tracers.front(), found->first));
  }
  return tracers;
}

}  // namespace tracefs
