#include "tracefs/format/state_message.h"

#include <algorithm>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/event/field.h"
#include "tracefs/format/argument_rows.h"

namespace tracefs::format {
namespace {

// ARG_STATE_KIND.
constexpr uint8_t kFirstTouch = 0;
constexpr uint8_t kAtEnd = 1;
constexpr uint8_t kIsOpen = 2;

constexpr ArgumentRow<StateRecord> kStateRows[] = {
    {ArgId::kStateKind,
     [](const Argument& argument, StateRecord* record) {
       record->at_end = argument.As<uint8_t>() == kAtEnd;
       record->is_open = argument.As<uint8_t>() == kIsOpen;
     }},
    {ArgId::kReadLate, &Into<&StateRecord::late>::Take},
    {ArgId::kIncomplete, &Into<&StateRecord::incomplete>::Take},
    {ArgId::kXattrs,
     [](const Argument& argument, StateRecord* record) {
       record->xattrs = argument.value;
     }},
    {ArgId::kDataRanges,
     [](const Argument& argument, StateRecord* record) {
       record->ranges = argument.value;
       record->has_ranges = true;
     }},
};

template <typename T>
void Append(T value, std::vector<std::byte>* out) {
  out->resize(out->size() + sizeof value);
  StoreLe<T>(out->data() + out->size() - sizeof value, value);
}

void AppendText(std::string_view text, std::vector<std::byte>* out) {
  Append(static_cast<uint32_t>(text.size()), out);
  const ByteSpan bytes = AsBytes(text);
  out->insert(out->end(), bytes.begin(), bytes.end());
}

}  // namespace

bool StateRecord::ForEachXattr(
    const std::function<void(std::string_view, std::string_view)>& visit)
    const {
  ByteCursor in(xattrs);
  while (in.left() != 0) {
    std::string_view texts[2];
    for (std::string_view& text : texts) {
      const auto size = in.TakeLe<uint32_t>();
      const auto bytes = size ? in.Take(*size) : std::nullopt;
      if (!bytes) return false;
      text = AsText(*bytes);
    }
    visit(texts[0], texts[1]);
  }
  return true;
}

bool StateRecord::ForEachRange(
    const std::function<void(uint64_t, uint64_t)>& visit) const {
  ByteCursor in(ranges);
  while (in.left() != 0) {
    const auto offset = in.TakeLe<uint64_t>();
    const auto length = in.TakeLe<uint64_t>();
    if (!offset || !length) return false;
    visit(*offset, *length);
  }
  return true;
}

namespace {

// Up to the end of the message.
void PutState(MessageWriter& out, const FileState& state, uint64_t time_ns,
              bool late, uint8_t kind, std::string_view path) {
  const auto put64 = [&](Field f, uint64_t value) {
    out.Put<uint64_t>(Info(f).arg_id, value);
  };
  const auto put32 = [&](Field f, uint64_t value) {
    out.Put<uint32_t>(Info(f).arg_id, static_cast<uint32_t>(value));
  };
  const struct stat& st = state.st;
  out.Begin(static_cast<uint16_t>(MessageId::kState));
  put64(Field::kTime, time_ns);
  out.Put<uint8_t>(ArgId::kStateKind, kind);
  put64(Field::kInode, st.st_ino);
  put32(Field::kMode, st.st_mode);
  put32(Field::kNlink, st.st_nlink);
  put64(Field::kSize, static_cast<uint64_t>(st.st_size));
  put32(Field::kFuid, st.st_uid);
  put32(Field::kFgid, st.st_gid);
  put64(Field::kMtime, NsOf(st.st_mtim));
  if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
    put64(Field::kRdev, st.st_rdev);
  }
  if (late) out.Put<uint8_t>(ArgId::kReadLate, 1);
  if (state.incomplete) out.Put<uint8_t>(ArgId::kIncomplete, 1);
  if (state.checksum) put32(Field::kDataChecksum, *state.checksum);
  std::vector<std::byte> bytes;
  if (state.data) {
    for (const FileState::Range& range : *state.data) {
      Append(range.offset, &bytes);
      Append(range.length, &bytes);
    }
    out.PutBytes(static_cast<uint16_t>(ArgId::kDataRanges), bytes);
  }
  if (!state.xattrs.empty()) {
    bytes.clear();
    for (const auto& [name, value] : state.xattrs) {
      AppendText(name, &bytes);
      AppendText(value, &bytes);
    }
    out.PutBytes(static_cast<uint16_t>(ArgId::kXattrs), bytes);
  }
  if (!state.target.empty()) {
    out.PutText(Info(Field::kTarget).arg_id, state.target);
  }
  if (!path.empty()) out.PutText(Info(Field::kPath).arg_id, path);
}

}  // namespace

bool WriteState(MessageWriter& out, const FileState& state, uint64_t time_ns,
                bool late, bool at_end, std::string_view path) {
  PutState(out, state, time_ns, late, at_end ? kAtEnd : kFirstTouch, path);
  return out.End();
}

bool WriteOpenFile(MessageWriter& out, const OpenFile& file, uint64_t time_ns) {
  PutState(out, file.state, time_ns, /*late=*/false, kIsOpen, file.path);
  out.Put<uint64_t>(Info(Field::kFh).arg_id, file.fh);
  out.Put<uint32_t>(Info(Field::kFlags).arg_id, file.flags);
  if (file.tid != 0) {
    out.Put<uint32_t>(Info(Field::kTid).arg_id, file.tid);
    out.Put<uint32_t>(Info(Field::kUid).arg_id, file.uid);
    out.Put<uint32_t>(Info(Field::kGid).arg_id, file.gid);
  }
  return out.End();
}

bool ReadState(ByteSpan arguments, const ArgumentWidths& widths,
               StateRecord* record) {
  *record = {};
  return TakeArguments(arguments, widths, kStateRows, record);
}

bool IsStateArgument(uint16_t arg_id) {
  return std::any_of(
      std::begin(kStateRows), std::end(kStateRows),
      [&](const auto& row) { return static_cast<uint16_t>(row.id) == arg_id; });
}

}  // namespace tracefs::format
