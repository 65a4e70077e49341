#include "tracefs/tools/ctl/live_feed.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tracefs/base/clock.h"
#include "tracefs/export/table.h"
#include "tracefs/screen/records.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/ctl/answer_json.h"
#include "tracefs/tools/ctl/request.h"
#include "tracefs/tools/ctl/text.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;
using screen::Notice;

// Messages taken from a mount before keys are looked at again.
constexpr int kTurn = 2000;
// Beyond the interval: what the mount needs to collect and tell.

Json ParseAnswer(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

uint64_t NumberIn(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_unsigned() ? at->get<uint64_t>()
                                                        : 0;
}

void AddLines(const std::string& text, std::vector<std::string>* lines) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines->push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

void AddLosses(const Json& stats, std::vector<Notice>* notices) {
  if (!stats.is_object()) return;
  const Json tracers = stats.value("tracers", Json::array());
  for (const Json& tracer : tracers) {
    if (!tracer.is_object()) continue;
    const std::string who = "tracer " + std::to_string(NumberIn(tracer, "id"));
    const Json lost = tracer.value("lost", Json::object());
    std::string reasons;
    uint64_t all = 0;
    if (lost.is_object()) {
      for (const auto& [reason, count] : lost.items()) {
        if (!count.is_number_unsigned() || count.get<uint64_t>() == 0) continue;
        all += count.get<uint64_t>();
        reasons += (reasons.empty() ? "" : ", ") + reason;
      }
    }
    if (all != 0) {
      notices->push_back(
          {Notice::Level::kBad, "LOST " + std::to_string(all) + " of " + who +
                                    " (" + TerminalText(reasons) + ")"});
    }
    if (const std::string error = TextIn(tracer, "error"); !error.empty()) {
      notices->push_back(
          {Notice::Level::kBad, who + ": " + TerminalText(error)});
    }
  }
}

void AddAlarms(const Json& rules, std::vector<Notice>* notices) {
  if (!rules.is_object()) return;
  const Json list = rules.value("rules", Json::array());
  for (const Json& rule : list) {
    if (!rule.is_object() || TextIn(rule, "state") != "alarm") continue;
    notices->push_back({Notice::Level::kBad,
                        "ALARM " + TerminalWord(TextIn(rule, "title")) +
                            " (tracer " +
                            std::to_string(NumberIn(rule, "tracer")) + ", " +
                            std::to_string(NumberIn(rule, "alarms")) + ")"});
  }
}

}  // namespace

Result<std::unique_ptr<LiveFeed>> LiveFeed::Open(const Options& options) {
  std::unique_ptr<LiveFeed> feed(new LiveFeed(options));
  for (const std::string& path : options.mounts) {
    if (Status s = feed->Watch(path); !s.ok()) return s;
  }
  return feed;
}

Status LiveFeed::Watch(const std::string& path) {
  Result<ControlClient> client =
      ControlClient::Connect(path, options_.patience);
  if (!client.ok()) return client.status();
  const Result<std::string> request =
      WatchRequest(options_.filter, options_.interval);
  if (!request.ok()) return request.status();
  if (const Result<std::string> answer = client->Call(*request); !answer.ok()) {
    return answer.status();
  }
  Mount mount;
  mount.path = path;
  const size_t source = mounts_.size();
  mount.counts = std::make_unique<LiveTrace>(
      client->TakeStream(), [](const format::Report&) {},
      [this, source](const format::AggregateRecord& record) {
        Count(source, record);
      });
  mount.last_end_ns = MonotonicNs();
  mounts_.push_back(std::move(mount));
  return Status::Ok();
}

void LiveFeed::AddDescriptors(std::vector<pollfd>* fds) const {
  for (const Mount& mount : mounts_) {
    if (!mount.ended) fds->push_back({mount.counts->fd(), POLLIN, 0});
    if (mount.operations != nullptr) {
      fds->push_back({mount.operations->fd(), POLLIN, 0});
    }
  }
}

void LiveFeed::Count(size_t source, const format::AggregateRecord& record) {
  Mount& mount = mounts_[source];
  // The last words repeat what was told period by period.
  if (record.total || activity_ == nullptr) return;
  const auto number = static_cast<uint32_t>(source);
  if (mount.pending && record.to_ns != mount.to_ns) {
    activity_->EndInterval(number, mount.to_ns - mount.from_ns);
    mount.last_end_ns = MonotonicNs();
    fresh_ = true;
  }
  mount.pending = true;
  mount.from_ns = std::min(record.from_ns, record.to_ns);
  mount.to_ns = record.to_ns;
  screen::CountAggregate(record, number, activity_);
}

// True if anything came.
bool LiveFeed::TakeCounts(size_t source) {
  Mount& mount = mounts_[source];
  const uint64_t before = mount.counts->stats().bytes;
  format::Record record;
  for (int i = 0; i < kTurn; ++i) {
    const format::ReadStep step = mount.counts->Next(&record);
    if (step == format::ReadStep::kEnd) mount.ended = true;
    if (step != format::ReadStep::kItem) break;
  }
  return mount.counts->stats().bytes != before;
}

Result<bool> LiveFeed::Take(screen::Activity* activity) {
  activity_ = activity;
  fresh_ = false;
  const auto interval_ns =
      static_cast<uint64_t>(options_.interval.count()) * kNsPerMs;
  for (size_t i = 0; i < mounts_.size(); ++i) {
    Mount& mount = mounts_[i];
    const bool came = !mount.ended && TakeCounts(i);
    const uint64_t now = MonotonicNs();
    // An interval is sent at once: if nothing follows, it is complete. If
    // nothing happens, nothing is sent.
    const bool told = mount.pending && (!came || mount.ended);
    if (!told && now - mount.last_end_ns < interval_ns + kLateNs) continue;
    activity->EndInterval(
        static_cast<uint32_t>(i),
        told ? mount.to_ns - mount.from_ns : now - mount.last_end_ns);
    mount.pending = false;
    mount.last_end_ns = now;
    fresh_ = true;
  }
  activity_ = nullptr;
  return fresh_;
}

bool LiveFeed::ended() const {
  return std::all_of(mounts_.begin(), mounts_.end(),
                     [](const Mount& mount) { return mount.ended; });
}

Status LiveFeed::status() const {
  for (const Mount& mount : mounts_) {
    if (!mount.counts->status().ok()) return mount.counts->status();
  }
  return Status::Ok();
}

Result<std::string> LiveFeed::Ask(Mount& mount, const std::string& request) {
  for (int tries = 0;; ++tries) {
    if (mount.asking == nullptr) {
      Result<ControlClient> client =
          ControlClient::Connect(mount.path, options_.patience);
      if (!client.ok()) return client.status();
      mount.asking = std::make_unique<ControlClient>(std::move(*client));
    }
    Result<std::string> answer = mount.asking->Call(request);
    if (answer.ok() || tries != 0) return answer;
    mount.asking = nullptr;  // it was idle for too long
  }
}

void LiveFeed::AddNotices(Mount& mount, std::vector<Notice>* notices) {
  if (mount.ended) {
    notices->push_back(
        {Notice::Level::kBad, TerminalWord(mount.path) + " has ended"});
    return;
  }
  if (const uint64_t lost = mount.counts->stats().lost_events; lost != 0) {
    notices->push_back(
        {Notice::Level::kBad, std::to_string(lost) + " not seen here"});
  }
  if (const auto stats = Ask(mount, SimpleRequest("stats")); stats.ok()) {
    AddLosses(ParseAnswer(*stats), notices);
  }
  if (const auto rules = Ask(mount, SimpleRequest("rules")); rules.ok()) {
    AddAlarms(ParseAnswer(*rules), notices);
  }
}

std::vector<Notice> LiveFeed::Notices() {
  std::vector<Notice> notices;
  for (Mount& mount : mounts_) AddNotices(mount, &notices);
  if (notices.empty()) {
    notices.push_back({Notice::Level::kGood, "no losses, no alarms"});
  }
  return notices;
}

std::vector<std::string> LiveFeed::About() {
  struct Part {
    const char* command;
    Result<std::string> (*text)(std::string_view);
  };
  static constexpr Part kParts[] = {
      {"list", ListText}, {"stats", StatsText}, {"rules", RulesText}};
  std::vector<std::string> lines;
  for (Mount& mount : mounts_) {
    for (const Part& part : kParts) {
      const Result<std::string> answer =
          Ask(mount, SimpleRequest(part.command));
      const Result<std::string> text =
          answer.ok() ? part.text(*answer) : answer;
      AddLines(text.ok() ? *text : TerminalText(text.status().message()),
               &lines);
      lines.emplace_back();
    }
  }
  return lines;
}

Status LiveFeed::Follow(const std::string& filter) {
  StopFollowing();
  for (Mount& mount : mounts_) {
    if (mount.ended) continue;
    Result<ControlClient> client =
        ControlClient::Connect(mount.path, options_.patience);
    if (!client.ok()) return client.status();
    const Result<std::string> request = FilterRequest("tail", nullptr, filter);
    if (!request.ok()) return request.status();
    const Result<std::string> answer = client->Call(*request);
    if (!answer.ok()) return answer.status();
    mount.operations = std::make_unique<LiveTrace>(
        client->TakeStream(), [](const format::Report&) {});
    mount.text = std::make_unique<StringOutput>();
    mount.exporter = FindLineFormat("text")->make(*mount.text, {});
  }
  return Status::Ok();
}

void LiveFeed::StopFollowing() {
  for (Mount& mount : mounts_) {
    mount.exporter = nullptr;
    mount.text = nullptr;
    mount.operations = nullptr;
  }
}

Status LiveFeed::TakeLines(std::vector<std::string>* lines) {
  for (Mount& mount : mounts_) {
    if (mount.operations == nullptr) continue;
    format::Record record;
    for (int i = 0; i < kTurn; ++i) {
      if (mount.operations->Next(&record) != format::ReadStep::kItem) break;
      mount.exporter->Write(record);
    }
    if (Status s = mount.text->Flush(); !s.ok()) return s;
    AddLines(mount.text->text(), lines);
    mount.text->Clear();
  }
  return Status::Ok();
}

}  // namespace tracefs
