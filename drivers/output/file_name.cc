#include "drivers/output/file_name.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/date_text.h"
#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

std::string DateText(uint64_t real_ns) {
  return UtcText(static_cast<time_t>(real_ns / kNsPerSecond), "%Y%m%dT%H%M%SZ");
}

// What a name consists of: texts, and what stands behind a %.
struct Piece {
  enum class Kind { kText, kDate, kSerial, kPercent, kUnknown };
  Kind kind{};
  std::string_view text;  // as written
};

Piece TakePiece(std::string_view* name) {
  constexpr std::pair<std::string_view, Piece::Kind> kWords[] = {
      {"%date", Piece::Kind::kDate},
      {"%serial", Piece::Kind::kSerial},
      {"%%", Piece::Kind::kPercent}};
  Piece piece;
  size_t size = std::min(name->find('%'), name->size());
  if (size == 0) {
    size = 1;
    piece.kind = Piece::Kind::kUnknown;
    for (const auto& [word, kind] : kWords) {
      if (!name->starts_with(word)) continue;
      size = word.size();
      piece.kind = kind;
    }
  }
  piece.text = name->substr(0, size);
  name->remove_prefix(size);
  return piece;
}

}  // namespace

Result<std::string> ExpandFileName(std::string_view name, uint64_t real_ns,
                                   const format::Serial& serial) {
  std::string text;
  while (!name.empty()) {
    const Piece piece = TakePiece(&name);
    switch (piece.kind) {
      case Piece::Kind::kText:
        text += piece.text;
        break;
      case Piece::Kind::kDate:
        text += DateText(real_ns);
        break;
      case Piece::Kind::kSerial:
        text += format::SerialText(serial);
        break;
      case Piece::Kind::kPercent:
        text += '%';
        break;
      case Piece::Kind::kUnknown:
        return Status::Invalid(
            "in a name of an output % begins %date or %serial; for the "
            "character itself write %%");
    }
  }
  return text;
}

std::string ExpandDate(std::string_view name, uint64_t real_ns) {
  std::string text;
  while (!name.empty()) {
    const Piece piece = TakePiece(&name);
    text += piece.kind == Piece::Kind::kDate ? DateText(real_ns)
                                             : std::string(piece.text);
  }
  return text;
}

bool IsTemplate(std::string_view name) {
  while (!name.empty()) {
    const Piece piece = TakePiece(&name);
    if (piece.kind == Piece::Kind::kDate ||
        piece.kind == Piece::Kind::kSerial) {
      return true;
    }
  }
  return false;
}

}  // namespace tracefs
