// TextMatcher: a text predicate made ready to run.
#pragma once

#include <memory>
#include <string_view>

#include "filters/input/check.h"
#include "filters/input/glob.h"
#include "tracefs/event/field.h"

namespace tracefs {

// Immutable; threads: any.
class TextMatcher {
 public:
  // `field` is kName, kExt, kPath (of either end), kFirstPath, kNewPath, kComm,
  // kAncestor or one of CallerDetails. Null for a malformed pattern, which a
  // checked filter has none of.
  static std::shared_ptr<const TextMatcher> Make(Field field, TextMatch match);

  Field field() const { return field_; }
  const TextMatch& match() const { return match_; }

  // Whether this text of the field satisfies the predicate. For kExt `text` is
  // the whole name, and one without an extension does not. No allocation.
  // kKnown asks only whether there is a text, which there is.
  bool Matches(std::string_view text) const;

 private:
  TextMatcher(Field field, TextMatch match)
      : field_(field), match_(std::move(match)) {}

  Field field_;
  TextMatch match_;
  std::optional<Glob> glob_;
};

}  // namespace tracefs
