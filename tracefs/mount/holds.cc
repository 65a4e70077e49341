#include "tracefs/mount/holds.h"

#include <optional>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/notice.h"

namespace tracefs {
namespace {

std::string WhomText(const HoldWish& wish) {
  return wish.pid == 0
             ? "user " + std::to_string(wish.uid)
             : "process " + std::to_string(wish.pid) + " and all below it";
}

Status NoSuchHold(uint64_t number) {
  return Status::Invalid("there is no hold " + std::to_string(number) +
                         "; it may have ended");
}

}  // namespace

Result<std::string> Holds::Begin(uint32_t tracer, const Rule& rule,
                                 const RuleAction& action, const Alarm& alarm) {
  const bool by_user = rule.key == RuleKey::kUid;
  const uint32_t pid = rule.key == RuleKey::kTree ? alarm.key_pid : alarm.pid;
  if (by_user ? alarm.uid == 0 : pid <= 1) {
    return Status::Invalid(by_user    ? "not done: user 0 is never held"
                           : pid == 0 ? "not done: the process is not known"
                                      : "not done: process 1 is never held");
  }
  if (!by_user && lot_.IsSpared(pid, MonotonicNs())) {
    return Status::Invalid("not done: it is an undo");
  }
  if (alarm.other) {
    return Status::Invalid("not done: there were too many to tell apart");
  }
  HoldWish wish = {.tracer = tracer,
                   .rule = alarm.rule + 1,
                   .title = rule.title,
                   .pid = by_user ? 0 : pid,
                   .uid = alarm.uid,
                   .comm = pid == alarm.pid ? alarm.command : "",
                   .duration_ns = action.duration_ns,
                   .fails = action.fails};
  std::string whom = WhomText(wish);
  Result<uint64_t> number = lot_.Begin(wish, MonotonicNs());
  if (!number.ok() && wish.pid != 0 && wish.uid != 0) {
    // Who starts more and more processes would leave the last of them free.
    const std::string why = number.status().message();
    wish.pid = 0;
    whom = WhomText(wish) + ", as " + why;
    number = lot_.Begin(wish, MonotonicNs());
    if (!number.ok()) {
      return Status::Invalid("not done: " + why + ", and " +
                             number.status().message());
    }
  }
  if (!number.ok()) return number.status().Prefixed("not done");
  std::string text = std::to_string(*number) + ", of " + whom + ", for " +
                     std::to_string(action.duration_ns / kNsPerMs) +
                     " ms, then " + (action.fails ? "fail" : "go on");
  Notify(NoticeId::kAlarm,
         "hold " + text + "; tracefs-ctl MNT held and release decide");
  return text;
}

void Holds::Tell(const HoldLot::Held& held, const std::string& what) {
  const std::string text = "hold " + std::to_string(held.number) + ", of " +
                           WhomText(held.wish) + ": " + what;
  Notify(NoticeId::kAlarm, text);
  const format::AlarmRecord record = {
      .rule = static_cast<uint32_t>(held.wish.rule),
      .title = held.wish.title,
      .key = RuleKeyName(held.wish.pid == 0 ? RuleKey::kUid : RuleKey::kPid),
      .op = std::nullopt,
      .actions = {text}};
  format::AlarmValues values;
  if (held.wish.pid != 0)
    values.numbers.emplace_back(Field::kPid, held.wish.pid);
  values.numbers.emplace_back(Field::kUid, held.wish.uid);
  static_cast<void>(pipeline_.Tell(held.wish.tracer, record, values));
}

void Holds::Tick() {
  if (!lot_.any()) return;
  for (const HoldLot::Held& held : lot_.EndOld(MonotonicNs())) {
    if (held.wish.fails) NoteOver(held);
    Tell(held, std::string("its time is up: ") +
                   (held.wish.fails ? "what waited failed" : "it goes on"));
  }
}

Status Holds::Release(uint64_t number, HoldEnd how, std::string_view by) {
  HoldLot::Held held;
  if (!lot_.End(number, how, &held)) {
    return NoSuchHold(number);
  }
  if (how == HoldEnd::kFail) NoteOver(held);
  Tell(held, std::string(how == HoldEnd::kGoOn ? "it goes on"
                                               : "what waited failed") +
                 ", as " + std::string(by) + " decided");
  return {};
}

Status Holds::Refuse(uint64_t number) {
  constexpr uint64_t kMostNs = 600 * kNsPerSecond;
  if (lot_.Refuse(number, MonotonicNs(), kMostNs)) return {};
  return NoSuchHold(number);
}

void Holds::Spare(uint32_t pid) {
  constexpr uint64_t kLongestUndoNs = 3600 * kNsPerSecond;
  lot_.Spare(pid, MonotonicNs() + kLongestUndoNs);
}

void Holds::NoteOver(const HoldLot::Held& held) {
  std::lock_guard lock(mu_);
  over_.push_back({held.wish.tracer,
                   {.rule = held.wish.rule - 1,
                    .pid = held.wish.pid,
                    .uid = held.wish.uid,
                    .at_ns = MonotonicNs()}});
  any_over_.store(true);
}

std::vector<HoldOver> Holds::TakeOver(uint32_t tracer) {
  std::vector<HoldOver> taken;
  if (!any_over_.load()) return taken;
  std::lock_guard lock(mu_);
  std::erase_if(over_, [&](const Over& over) {
    if (over.tracer != tracer) return false;
    taken.push_back(over.hold);
    return true;
  });
  any_over_.store(!over_.empty());
  return taken;
}

void Holds::EndOf(uint32_t tracer) {
  static_cast<void>(TakeOver(tracer));
  for (const HoldLot::Held& held : lot_.EndOf(tracer)) {
    Tell(held, "it goes on: its tracer was stopped or removed");
  }
}

}  // namespace tracefs
