// The compiled filter of filters/input, which knows no pipeline, as a stage of
// one.
#ifndef TRACEFS_TRACERS_INPUT_FILTER_ADAPTER_H_
#define TRACEFS_TRACERS_INPUT_FILTER_ADAPTER_H_

#include <memory>
#include <string>
#include <utility>

#include "filters/input/filter.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

class FilterStage final : public InputFilter {
 public:
  explicit FilterStage(Filter filter) : filter_(std::move(filter)) {}

  FilterNeeds Needs(Op op) const override { return filter_.Needs(op); }
  Verdict DecideEarly(Event& event) const override {
    return filter_.DecideEarly(event);
  }
  Verdict DecideForFile(Event& event) const override {
    return filter_.DecideForFile(event);
  }
  bool Keep(Event& event) const override { return filter_.Keep(event); }
  std::string Describe(Op op) const override {
    return filter_.program(op).Dump();
  }

 private:
  const Filter filter_;
};

}  // namespace tracefs

#endif  // TRACEFS_TRACERS_INPUT_FILTER_ADAPTER_H_
