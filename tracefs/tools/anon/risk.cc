#include "tracefs/tools/anon/risk.h"

namespace tracefs::anonymize {

std::string RiskText(const Plan& plan) {
  std::string text;
  bool deterministic = false;
  bool shifted = false;
  bool names = false;
  bool clear_sizes = false;
  bool coarse_sizes = false;
  bool checksums = false;
  for (const FieldPlan& field : plan.fields()) {
    if (field.rule == nullptr) continue;
    const Action action = field.rule->action;
    const bool lasting = action == Action::kEncrypt || action == Action::kFpe ||
                         action == Action::kHmac || action == Action::kMap ||
                         action == Action::kPaper;
    deterministic |= lasting;
    shifted |= action == Action::kShift || field.rule->shift;
    names |= field.class_name == "name" && lasting;
    clear_sizes |= field.class_name == "size" && action == Action::kKeep;
    coarse_sizes |= field.class_name == "size" && action != Action::kKeep;
    checksums |= field.class_name == "checksum" && action == Action::kKeep;
  }
  text += "\nWhat risk remains:\n";
  if (deterministic) {
    text +=
        "  - Equal values have equal tokens. Who knows how often something "
        "happened can\n    tell what it was; a user who did something "
        "striking while the trace was made\n    finds it again.\n";
  }
  if (names) {
    text +=
        "  - The shape of the tree is visible: known trees (a Linux source, "
        "a package) can\n    be recognised by it.\n";
  }
  if (clear_sizes) {
    text +=
        "  - Sizes of files are in clear; known files are recognised by "
        "them.\n";
  }
  if (coarse_sizes) {
    text +=
        "  - How many transfers a file took tells its size as closely as they "
        "are short: a\n    file that is read byte by byte is as long as that "
        "many reads.\n";
  }
  if (checksums) {
    text +=
        "  - Checksums of data are in clear: contents that can be guessed "
        "can be confirmed.\n";
  }
  if (shifted) {
    text +=
        "  - Times are shifted by one constant: who knows the time of one "
        "event knows all.\n";
  }
  text +=
      "  - How much was done, by how many, in which order and how fast is "
      "in clear: that\n    is what the trace is for.\n";
  return text;
}

}  // namespace tracefs::anonymize
