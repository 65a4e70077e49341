#include "tracefs/format/embedded_file.h"

#include "tracefs/event/field.h"
#include "tracefs/format/argument_rows.h"

namespace tracefs::format {
namespace {

constexpr auto kPathId = static_cast<ArgId>(Info(Field::kPath).arg_id);
constexpr auto kSizeId = static_cast<ArgId>(Info(Field::kSize).arg_id);
constexpr auto kMtimeId = static_cast<ArgId>(Info(Field::kMtime).arg_id);
constexpr auto kModeId = static_cast<ArgId>(Info(Field::kMode).arg_id);

constexpr ArgumentRow<EmbeddedFile> kFileRows[] = {
    {kPathId, &Into<&EmbeddedFile::path>::Take},
    {kSizeId, &Into<&EmbeddedFile::size>::Take},
    {kMtimeId, &Into<&EmbeddedFile::mtime_ns>::Take},
    {kModeId, &Into<&EmbeddedFile::mode>::Take},
    {ArgId::kLeftOut, &Into<&EmbeddedFile::left_out>::Take},
    {ArgId::kCount, &Into<&EmbeddedFile::count>::Take},
    {ArgId::kContentSure,
     [](const Argument& argument, EmbeddedFile* file) {
       file->sure = argument.As<uint8_t>() == 0 ? EmbeddedFile::Sure::kYes
                                                : EmbeddedFile::Sure::kByTime;
     }},
    {ArgId::kContentHash,
     [](const Argument& argument, EmbeddedFile* file) {
       file->hash = argument.value;
     }},
    {ArgId::kContent,
     [](const Argument& argument, EmbeddedFile* file) {
       file->has_content = true;
       file->content = argument.value;
     }},
};

}  // namespace

bool WriteEmbeddedFile(MessageWriter& out, const EmbeddedFile& file) {
  out.Begin(static_cast<uint16_t>(MessageId::kFile));
  if (!file.path.empty()) {
    out.PutText(kPathId, file.path);
    out.Put<uint64_t>(kSizeId, file.size);
    out.Put<uint64_t>(kMtimeId, file.mtime_ns);
    out.Put<uint32_t>(kModeId, file.mode);
  } else {
    out.Put<uint64_t>(ArgId::kCount, file.count);
  }
  if (!file.left_out.empty()) {
    out.PutText(ArgId::kLeftOut, file.left_out);
    return out.End();
  }
  out.Put<uint8_t>(ArgId::kContentSure, static_cast<uint8_t>(file.sure));
  out.PutBytes(static_cast<uint16_t>(ArgId::kContentHash), file.hash);
  if (file.has_content) {
    out.PutBytes(static_cast<uint16_t>(ArgId::kContent), file.content);
  }
  return out.End();
}

bool ReadEmbeddedFile(ByteSpan arguments, const ArgumentWidths& widths,
                      EmbeddedFile* file) {
  if (!TakeArguments(arguments, widths, kFileRows, file)) return false;
  if (!file->left_out.empty()) return !file->has_content;
  return !file->path.empty() && file->hash.size() == EmbeddedFile::kHashBytes &&
         file->content.size() <= EmbeddedFile::kMostBytes &&
         (!file->has_content || file->content.size() == file->size);
}

}  // namespace tracefs::format
