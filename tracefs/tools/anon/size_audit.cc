#include "tracefs/tools/anon/size_audit.h"

#include <bit>

#include "tracefs/base/text.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/tools/anon/audit_walk.h"

namespace tracefs::anonymize {
namespace {

constexpr size_t kRangeBytes = 2 * sizeof(uint64_t);

// What cannot be told from its class is no size.
bool IsClass(uint64_t number) {
  return number == 0 || std::has_single_bit(number);
}

bool IsNegative(uint64_t number) { return number >> 63 != 0; }

}  // namespace

SizeAudit::SizeAudit(const Plan& plan, const NumberSet& original_sizes)
    : plan_(plan), original_(original_sizes) {
  for (const FieldPlan& field : plan.fields()) {
    State& state = states_.emplace_back();
    state.tells = TellsOfSize(field.arg_id);
    if (field.rule == nullptr || state.tells == SizeTell::kNothing) continue;
    if (state.tells == SizeTell::kSize && !TellsExactly(field)) hidden_ = true;
    if (!IsCounted(state.tells)) {
      state.exact = TellsExactly(field);
      continue;
    }
    // Rewritten traces have in its place what becomes of lengths.
    const FieldPlan& length = *field.follows;
    state.exact = length.rule == nullptr || TellsExactly(length);
    if (state.exact) continue;
    const Rule& rule = *length.rule;
    const bool coarse = !rule.shift && (rule.action == Action::kBucket ||
                                        rule.action == Action::kQuantise ||
                                        rule.action == Action::kZero);
    state.absent = !coarse || state.tells == SizeTell::kRanges;
    state.form = NumberForm(length, rule);
  }
}

void SizeAudit::Look(const format::Message& message,
                     const format::Argument& argument, const FieldPlan& field) {
  if (message.arguments.data() != message_) {
    message_ = message.arguments.data();
    offset_.reset();
  }
  State& state = states_[plan_.NumberOfField(field)];
  if (!state.exact && !IsCounted(state.tells)) return;  // by its own rule
  const ByteSpan value = argument.value;
  if (state.absent) {
    Told(value.size(), &state);
    return;
  }
  switch (state.tells) {
    case SizeTell::kBytes:
    case SizeTell::kTarget:
      if (!value.empty()) Told(value.size(), &state);
      return;
    case SizeTell::kRanges:
      if (value.size() >= kRangeBytes) {
        const std::byte* last = value.data() + value.size() - kRangeBytes;
        Told(LoadLe<uint64_t>(last) + LoadLe<uint64_t>(last + 8), &state);
      }
      return;
    case SizeTell::kHistogram:
      for (ByteSpan in = value; in.size() >= format::kHistogramPairBytes;
           in = in.subspan(format::kHistogramPairBytes)) {
        const auto bucket = LoadLe<uint16_t>(in.data());
        LookAtNumber(bucket < tally::kHistogramBuckets
                         ? tally::HistogramLow(bucket)
                         : bucket,
                     &state);
      }
      return;
    default:
      break;
  }
  if (argument.has_length) return;  // opaque
  const uint64_t number = LoadWide(value);
  LookAtNumber(number, &state);
  if (field.arg_id == Info(Field::kOffset).arg_id) offset_ = number;
  if (field.arg_id == Info(Field::kResult).arg_id && offset_ &&
      !IsNegative(number)) {
    LookAtNumber(number + *offset_, &state);
  }
}

void SizeAudit::LookAtNumber(uint64_t number, State* state) {
  if (IsClass(number) || IsNegative(number)) return;
  if (!state->exact && state->form.Fits(number)) return;
  Told(number, state);
}

void SizeAudit::Told(uint64_t number, State* state) {
  if (state->times++ == 0) state->example = number;
  if (original_.Has(number)) state->sizes.Add(number);
}

void SizeAudit::Tell(
    const std::function<void(const std::string&)>& leak) const {
  for (const FieldPlan& field : plan_.fields()) {
    const State& state = states_[plan_.NumberOfField(field)];
    if (!hidden_ || state.times == 0) continue;
    std::string text = field.name +
                       ": the policy hides sizes of files, and it is there " +
                       (state.exact    ? "exactly, "
                        : state.absent ? "at all, "
                                       : "not as " + state.form.Text() + ", ") +
                       std::to_string(state.times) + " times, for example " +
                       std::to_string(state.example) + ": " +
                       std::string(WhatItTells(state.tells));
    if (state.sizes.size() != 0) {
      uint64_t smallest = UINT64_MAX;
      state.sizes.ForEach(
          [&](uint64_t size) { smallest = std::min(smallest, size); });
      text += "; " + std::to_string(state.sizes.size()) +
              " sizes of the original follow, for example " +
              std::to_string(smallest);
    }
    leak(text);
  }
}

}  // namespace tracefs::anonymize
