#include "filters/input/text_matcher.h"

#include <algorithm>
#include <functional>

#include "tracefs/event/event.h"

namespace tracefs {

std::shared_ptr<const TextMatcher> TextMatcher::Make(Field field,
                                                     TextMatch match) {
  std::shared_ptr<TextMatcher> made(new TextMatcher(field, std::move(match)));
  if (made->match_.kind == TextMatch::Kind::kGlob) {
    if (made->match_.texts.size() != 1) return nullptr;
    auto glob =
        Glob::Compile(made->match_.texts[0],
                      Info(field).shape == DataShape::kPath ? GlobKind::kPath
                                                            : GlobKind::kName);
    if (!glob.ok()) return nullptr;
    made->glob_ = *std::move(glob);
  }
  return made;
}

bool TextMatcher::Matches(std::string_view text) const {
  if (match_.kind == TextMatch::Kind::kKnown) return true;
  if (field_ == Field::kExt) text = ExtensionOf(text);
  if (text.empty()) return false;
  if (glob_) return glob_->Matches(text);
  const bool found = std::binary_search(
      match_.texts.begin(), match_.texts.end(), text, std::less<>());
  return found == (match_.kind == TextMatch::Kind::kAnyOf);
}

}  // namespace tracefs
