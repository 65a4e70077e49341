#include "tracefs/format/index_piece.h"

#include "tracefs/format/argument_rows.h"

namespace tracefs::format {
namespace {

constexpr ArgumentRow<IndexPiece> kIndexRows[] = {
    {ArgId::kIndexOf, &Into<&IndexPiece::of>::Take},
    {ArgId::kIndexBytes, &Into<&IndexPiece::part, &IndexedPart::bytes>::Take},
    {ArgId::kBlockCount, &Into<&IndexPiece::part, &IndexedPart::frames>::Take},
    {ArgId::kEventCount, &Into<&IndexPiece::part, &IndexedPart::events>::Take},
    {ArgId::kIndexLink, &Into<&IndexPiece::part, &IndexedPart::link>::Take},
    {ArgId::kIndexSection,
     [](const Argument& argument, IndexPiece* piece) {
       piece->section = argument.As<uint8_t>();
     }},
    {ArgId::kIndexPiece, &Into<&IndexPiece::piece>::Take},
    {ArgId::kIndexPieces, &Into<&IndexPiece::pieces>::Take},
    {ArgId::kIndexData,
     [](const Argument& argument, IndexPiece* piece) {
       piece->data = argument.value;
     }},
};

}  // namespace

bool WriteIndexPiece(MessageWriter& out, const IndexPiece& piece) {
  out.Begin(static_cast<uint16_t>(MessageId::kIndex));
  out.PutText(ArgId::kIndexOf, piece.of);
  out.Put<uint64_t>(ArgId::kIndexBytes, piece.part.bytes);
  out.Put<uint64_t>(ArgId::kBlockCount, piece.part.frames);
  out.Put<uint64_t>(ArgId::kEventCount, piece.part.events);
  out.Put<uint32_t>(ArgId::kIndexLink, piece.part.link);
  out.Put<uint8_t>(ArgId::kIndexSection, piece.section);
  out.Put<uint32_t>(ArgId::kIndexPiece, piece.piece);
  out.Put<uint32_t>(ArgId::kIndexPieces, piece.pieces);
  out.PutBytes(static_cast<uint16_t>(ArgId::kIndexData), piece.data);
  return out.End();
}

bool ReadIndexPiece(ByteSpan arguments, const ArgumentWidths& widths,
                    IndexPiece* piece) {
  return TakeArguments(arguments, widths, kIndexRows, piece);
}

}  // namespace tracefs::format
