// The input filter: text in, answers out. Everything else of this folder is a
// stage on the way (parse.h, check.h, compile.h, program.h) or what they need.
//
//   NameTable names;                         // one a process
//   auto filter = Filter::Compile("op = write AND ext IN { c h }",
//                                 {.file = "x.conf", .position = {3, 5}},
//                                 SystemNameService(), names);
//   if (!filter.ok()) …                      // "x.conf:3:9: …"
//   if (filter->Keep(event)) …
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "filters/input/compile.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "filters/input/parse.h"
#include "tracefs/base/status.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/event/event.h"
#include "tracefs/event/verdict.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// Where a filter's text stands, for messages.
struct FilterOrigin {
  std::string_view file = {};
  SourcePosition position = {};
};

// A compiled filter. Immutable; copies share everything; threads: any.
class Filter final : public InputFilter {
 public:
  // Language: LANGUAGE.md. The empty text matches everything. Errors are
  // kInvalid with place, offending word and nearest known one; kSystem where
  // users or groups cannot be looked up. May block on that. `names` must
  // outlive the filter.
  static Result<Filter> Compile(std::string_view text,
                                const FilterOrigin& origin,
                                const NameService& users, NameTable& names);

  // See Program for what each of these means.
  FilterNeeds Needs(Op op) const override { return program(op).Needs(op); }
  Verdict DecideEarly(Event& event) const override {
    return program(event.op).DecideEarly(event);
  }
  Verdict DecideForFile(Event& event) const override {
    return program(event.op).DecideForFile(event);
  }
  bool Keep(Event& event) const override {
    return program(event.op).Keep(event);
  }
  std::string Describe(Op op) const override { return program(op).Dump(); }

  // The program of one operation, and the one that answers for all of them.
  const Program& program(Op op) const { return compiled_->program(op); }
  const Program& general() const { return compiled_->general(); }

  const std::string& text() const { return source_->text; }
  // Whether the text names the operation in a predicate on `op`; "op != read"
  // names read.
  bool Names(Op op) const { return (source_->named_ops >> Index(op) & 1) != 0; }
  // What in it can never match: "file:line:column: …", for people.
  const std::vector<std::string>& warnings() const { return source_->warnings; }

 private:
  // What is known of it besides its programs.
  struct Source {
    std::string text;
    uint64_t named_ops = 0;
    std::vector<std::string> warnings;
  };

  Filter(std::shared_ptr<const Source> source,
         std::shared_ptr<const CompiledFilter> compiled)
      : source_(std::move(source)), compiled_(std::move(compiled)) {}

  std::shared_ptr<const Source> source_;
  std::shared_ptr<const CompiledFilter> compiled_;
};

}  // namespace tracefs
