#include "tracefs/mount/run_additions.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "tracefs/build/build_graph.h"
#include "tracefs/build/graph_index.h"
#include "tracefs/build/record_step.h"
#include "tracefs/format/frame_places.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {
namespace {

// Outputs may be slow.
constexpr std::chrono::minutes kPatienceForOutputs{10};

class Adder {
 public:
  Adder(const AdditionOptions& options, const std::string& trace,
        UniqueFd folder, bool goes_on, ProcessFeed& feed)
      : options_(options),
        trace_(trace),
        goes_on_(goes_on),
        feed_(feed),
        embedder_(options.embed, std::move(folder)) {}

  std::string Add() {
    if (!feed_.AwaitFlushed(goes_on_, kPatienceForOutputs)) {
      return "nothing was added: the mount does not say that it is complete";
    }
    if (Status s = Read(); !s.ok()) return "nothing was added: " + s.message();
    std::string said;
    if (!options_.embed.patterns.empty()) {
      said = EmbeddedText(embedder_.Write([this](ByteSpan messages) {
        ++sent_;
        feed_.SendMessages(messages);
      }));
    }
    if (!options_.index) return said;
    if (const std::string why = Index(); !why.empty()) {
      said += (said.empty() ? "" : "; ") + ("no index: " + why);
    }
    return said;
  }

 private:
  Status Read() {
    reader::InputSinks sinks;
    sinks.process = [this](const ProcessRecord& record) {
      if (options_.index) graph_.Take(record);
    };
    auto opened = reader::TraceInput::Open(
        {.traces = {trace_}, .keys = options_.keys, .all_or_none = true},
        std::move(sinks));
    if (!opened.ok()) return opened.status();
    input_ = *std::move(opened);
    build::RecordSteps steps;
    format::Record record;
    while (input_->Next(&record)) {
      if (!options_.embed.patterns.empty()) embedder_.Note(record);
      if (!options_.index) continue;
      if (const build::FileStep* const step = steps.Of(record)) {
        graph_.Take(*step);
      }
    }
    if (Status s = input_->status(); !s.ok()) return s;
    const format::ReadStats& stats = input_->trace(0).stats();
    if (stats.blocks != 0 && stats.undecodable_blocks == stats.blocks) {
      return Status::Invalid("it cannot be read; next: --key");
    }
    return {};
  }

  // Empty, or why there is none.
  std::string Index() {
    if (goes_on_) return "others still use the mount";
    const format::ReadStats& stats = input_->trace(0).stats();
    if (!build::MayIndex(stats)) return "the trace is not whole";
    // A block for each.
    if (!feed_.FlushSent(kPatienceForOutputs)) return "the mount is gone";
    const UniqueFd fd(::open(trace_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return Status::System(errno, trace_).message();
    const Result<format::FramePlaces> places = format::FindFrames(fd.get());
    if (!places.ok()) return places.status().message();
    const size_t count = places->frames.size();
    if (count != stats.blocks + sent_) return "more was recorded meanwhile";
    build::WriteGraphIndex(
        graph_.Finish(), places->PartOf(count, stats.events),
        [this](ByteSpan messages) { feed_.SendMessages(messages); });
    return {};
  }

  const AdditionOptions& options_;
  const std::string& trace_;
  const bool goes_on_;
  ProcessFeed& feed_;
  Embedder embedder_;
  build::GraphBuilder graph_;
  std::unique_ptr<reader::TraceInput> input_;
  uint64_t sent_ = 0;  // blocks
};

}  // namespace

Result<std::string> TraceOfConfig(const std::string& path,
                                  const AdditionOptions& options) {
  const Result<Config> config = LoadConfig(path, FullSchema());
  if (!config.ok()) return config.status();
  const auto refused = [&](const std::string& why) {
    return Status::Invalid(
        "--embed and --index add to one trace in one file, which is read for "
        "it at the end; in " +
        path + ' ' + why);
  };
  if (config->tracers.size() != 1) return refused("are several tracers");
  const std::vector<ConfigEntry>& output = config->tracers[0].output;
  const ConfigEntry& driver = output.back();
  if (driver.name != "file" || driver.Has("feed") ||
      driver.value.text.find('%') != std::string::npos) {
    return refused("it goes elsewhere");
  }
  for (const char* const rotates :
       {"rotate_size", "rotate_time", "rotate_count"}) {
    if (driver.Has(rotates)) return refused("it is rotated");
  }
  for (const ConfigEntry& filter : output) {
    if (filter.name == "encrypt" && options.keys.empty()) {
      return refused("it is encrypted: say with --key how to read it");
    }
  }
  return driver.value.text;
}

std::string AddToTrace(const AdditionOptions& options, const std::string& trace,
                       UniqueFd folder, bool goes_on, ProcessFeed& feed) {
  return Adder(options, trace, std::move(folder), goes_on, feed).Add();
}

}  // namespace tracefs
