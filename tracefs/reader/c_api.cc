// The C interface: tracefs_reader.h says what each call does. Nothing leaves
// these functions but their results: what the library throws ends here.
#include <fcntl.h>

#include <memory>
#include <string>
#include <utility>

#include "tracefs/base/version.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/format/names.h"
#include "tracefs/reader/c_api_state.h"
#include "tracefs/reader/fields.h"

using tracefs::AsText;
using tracefs::ByteSpan;
using tracefs::Result;
using tracefs::Status;
namespace format = tracefs::format;
namespace reader = tracefs::reader;
using tracefs::c_api::Guarded;
using tracefs::c_api::State;

namespace {

State* StateOf(const tracefs_event* event) {
  return static_cast<State*>(event->state);
}

const std::string& ArgumentName(State& state, size_t trace, uint16_t id) {
  auto [at, added] = state.argument_names.try_emplace({trace, id});
  if (added) {
    at->second = state.reader.trace(trace).context().NameOfArgument(id);
  }
  return at->second;
}

void FillArgument(State& state, size_t trace, uint16_t id, bool has_length,
                  ByteSpan value, tracefs_argument* out) {
  *out = {};
  out->id = id;
  out->name = ArgumentName(state, trace, id).c_str();
  const auto& described =
      state.reader.trace(trace).context().description.arguments;
  const auto found = described.find(id);
  if (found != described.end()) {
    out->type = found->second.type;
  } else {
    const format::ArgumentInfo* const known = format::FindArgument(id);
    out->type = static_cast<uint32_t>(
        known != nullptr ? known->type : tracefs::FieldType::kBytes);
  }
  out->value = value.data();
  out->size = value.size();
  if (has_length) return;
  const bool is_signed =
      out->type == static_cast<uint32_t>(tracefs::FieldType::kSigned);
  out->is_number = format::LoadNumber(value, is_signed, &out->number) ? 1 : 0;
}

}  // namespace

extern "C" {

// --- Options

tracefs_options* tracefs_options_new(void) {
  try {
    return new tracefs_options;
  } catch (...) {
    return nullptr;
  }
}

void tracefs_options_free(tracefs_options* options) { delete options; }

const char* tracefs_options_message(const tracefs_options* options) {
  return options == nullptr ? "there are no options" : options->message.c_str();
}

int tracefs_options_add_path(tracefs_options* options, const char* path) {
  return Guarded(options, [path](reader::ReaderOptions& o) -> Status {
    if (path == nullptr || *path == '\0') {
      return Status::Invalid("the path is empty");
    }
    o.inputs.push_back({.name = path});
    return Status::Ok();
  });
}

int tracefs_options_add_fd(tracefs_options* options, int fd, const char* name) {
  return Guarded(options, [=](reader::ReaderOptions& o) -> Status {
    tracefs::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) return Status::System(errno, "cannot take the descriptor");
    o.inputs.push_back(
        {.name = name == nullptr ? "descriptor" : name,
         .fd = std::make_shared<const tracefs::UniqueFd>(std::move(copy))});
    return Status::Ok();
  });
}

int tracefs_options_add_memory(tracefs_options* options, const void* bytes,
                               size_t size, const char* name) {
  return Guarded(options, [=](reader::ReaderOptions& o) -> Status {
    if (bytes == nullptr && size != 0) {
      return Status::Invalid("there is no memory to read");
    }
    o.inputs.push_back(
        {.name = name == nullptr ? "memory" : name,
         .memory = ByteSpan(static_cast<const std::byte*>(bytes), size)});
    return Status::Ok();
  });
}

int tracefs_options_add_key(tracefs_options* options, const char* source) {
  return Guarded(options, [source](reader::ReaderOptions& o) -> Status {
    const Result<tracefs::KeySource> key =
        tracefs::ParseKeyArgument(source == nullptr ? "" : source);
    return key.ok() ? o.keys->Add(*key) : key.status();
  });
}

int tracefs_options_set_filter(tracefs_options* options, const char* text) {
  return Guarded(options, [text](reader::ReaderOptions& o) -> Status {
    if (text == nullptr || *text == '\0') {
      o.filter = nullptr;
      return Status::Ok();
    }
    auto filter = reader::EventFilter::Compile(text, "filter");
    if (!filter.ok()) return filter.status();
    o.filter = *std::move(filter);
    return Status::Ok();
  });
}

int tracefs_options_set_range(tracefs_options* options, uint64_t from,
                              uint64_t to) {
  return Guarded(options, [=](reader::ReaderOptions& o) -> Status {
    if (from > to) return Status::Invalid("the range ends before it begins");
    o.range = {from, to};
    return Status::Ok();
  });
}

int tracefs_options_set(tracefs_options* options, int what, uint64_t value) {
  return Guarded(options, [=](reader::ReaderOptions& o) -> Status {
    switch (what) {
      case TRACEFS_FOLLOW:
        o.follow = value != 0;
        return Status::Ok();
      case TRACEFS_MEMORY_BYTES:
        o.memory_bytes = value;
        return Status::Ok();
      case TRACEFS_THREADS:
        o.threads = static_cast<unsigned>(std::min<uint64_t>(value, 1024));
        return Status::Ok();
      case TRACEFS_FILE_ORDER:
        o.file_order = value != 0;
        return Status::Ok();
      case TRACEFS_NO_OPERATIONS:
        o.no_operations = value != 0;
        return Status::Ok();
      case TRACEFS_BATCH_ROWS:
        if (value == 0 || value > uint64_t{1} << 24) {
          return Status::Invalid("a batch has 1 to 16777216 rows");
        }
        o.batch_rows = value;
        return Status::Ok();
      default:
        return Status::Invalid("there is no option " + std::to_string(what));
    }
  });
}

int tracefs_options_set_strict(tracefs_options* options, uint64_t kinds) {
  return Guarded(options, [=](reader::ReaderOptions& o) -> Status {
    o.strict_kinds = kinds;
    return Status::Ok();
  });
}

int tracefs_options_set_lenient(tracefs_options* options, uint64_t kinds) {
  return Guarded(options, [=](reader::ReaderOptions& o) -> Status {
    o.lenient_kinds = kinds;
    return Status::Ok();
  });
}

int tracefs_options_on_report(tracefs_options* options,
                              tracefs_report_function report, void* context) {
  return Guarded(options, [=](reader::ReaderOptions& o) -> Status {
    o.on_finding = nullptr;
    if (report == nullptr) return Status::Ok();
    o.on_finding = [=](const reader::Finding& finding) {
      const tracefs_report told = {finding, {}};
      report(context, &told);
    };
    return Status::Ok();
  });
}

int tracefs_options_on_text(tracefs_options* options, tracefs_text_function f,
                            void* context) {
  return Guarded(options, [=](reader::ReaderOptions& o) -> Status {
    o.on_text = nullptr;
    if (f == nullptr) return Status::Ok();
    o.on_text = [=](uint32_t field, std::string_view text,
                    std::string_view* other) {
      const char* new_text = nullptr;
      size_t new_size = 0;
      if (f(context, field, text.data(), text.size(), &new_text, &new_size) !=
              1 ||
          (new_text == nullptr && new_size != 0)) {
        return false;
      }
      *other = {new_text, new_size};
      return true;
    };
    return Status::Ok();
  });
}

int tracefs_report_kind(const tracefs_report* report) {
  return report->finding.kind;
}
size_t tracefs_report_trace(const tracefs_report* report) {
  return report->finding.trace;
}
uint64_t tracefs_report_offset(const tracefs_report* report) {
  return report->finding.report->offset;
}
uint64_t tracefs_report_number(const tracefs_report* report) {
  return report->finding.report->number;
}
uint64_t tracefs_report_count(const tracefs_report* report) {
  return report->finding.report->count;
}
const char* tracefs_report_text(const tracefs_report* report) {
  try {
    if (report->text.empty()) report->text = report->finding.report->Text();
    return report->text.c_str();
  } catch (...) {
    return "out of memory";
  }
}

// --- Readers

tracefs_reader* tracefs_reader_open(const tracefs_options* options) {
  if (options == nullptr) return nullptr;
  try {
    auto made = std::make_unique<tracefs_reader>();
    made->state = std::make_shared<State>(options->options);
    return made.release();
  } catch (...) {
    return nullptr;
  }
}

void tracefs_reader_close(tracefs_reader* r) { delete r; }

int tracefs_reader_status(const tracefs_reader* r) {
  return r == nullptr ? TRACEFS_SYSTEM : r->state->reader.status();
}

const char* tracefs_reader_message(const tracefs_reader* r) {
  return r == nullptr ? "out of memory" : r->state->reader.message().c_str();
}

uint64_t tracefs_reader_count(const tracefs_reader* r, int kind) {
  if (r == nullptr || kind < 0 || kind >= TRACEFS_REPORT_KINDS) return 0;
  return r->state->reader.Counts()[static_cast<size_t>(kind)];
}

int tracefs_reader_complete(const tracefs_reader* r) {
  return r != nullptr && r->state->reader.Complete() ? 1 : 0;
}

void tracefs_reader_cancel(tracefs_reader* r) {
  if (r != nullptr) r->state->reader.Cancel();
}

void tracefs_reader_progress(const tracefs_reader* r, uint64_t* done,
                             uint64_t* total) {
  *done = *total = 0;
  if (r != nullptr) r->state->reader.Progress(done, total);
}

void tracefs_reader_stop(tracefs_reader* r) {
  if (r != nullptr) r->state->reader.Stop();
}

size_t tracefs_reader_traces(const tracefs_reader* r) {
  return r == nullptr ? 0 : r->state->reader.size();
}

const char* tracefs_reader_trace_name(const tracefs_reader* r, size_t trace) {
  if (r == nullptr || trace >= r->state->reader.size()) return nullptr;
  return r->state->reader.trace(trace).context().name.c_str();
}

int tracefs_reader_property(tracefs_reader* r, size_t trace, const char* key,
                            const char** value, size_t* size) {
  return Guarded(r, [=](State& state) {
    const int code = state.reader.ReadHeader(trace);
    if (code != TRACEFS_ITEM) return code;
    const auto& header = state.reader.trace(trace).description().header;
    for (const auto& [name, text] : header.properties) {
      if (key == nullptr || name != key) continue;
      *value = text.data();
      *size = text.size();
      return static_cast<int>(TRACEFS_ITEM);
    }
    return static_cast<int>(TRACEFS_END);
  });
}

int tracefs_reader_property_at(tracefs_reader* r, size_t trace, size_t number,
                               const char** key, size_t* key_size,
                               const char** value, size_t* size) {
  return Guarded(r, [=](State& state) {
    const int code = state.reader.ReadHeader(trace);
    if (code != TRACEFS_ITEM) return code;
    const auto& all = state.reader.trace(trace).description().header.properties;
    if (number >= all.size()) return static_cast<int>(TRACEFS_END);
    *key = all[number].first.data();
    *key_size = all[number].first.size();
    *value = all[number].second.data();
    *size = all[number].second.size();
    return static_cast<int>(TRACEFS_ITEM);
  });
}

int tracefs_reader_format(tracefs_reader* r, size_t trace, unsigned* version,
                          unsigned* min_reader_version) {
  return Guarded(r, [=](State& state) {
    const int code = state.reader.ReadHeader(trace);
    if (code != TRACEFS_ITEM) return code;
    const format::Preamble& preamble = state.reader.trace(trace).preamble();
    *version = preamble.format_version;
    *min_reader_version = preamble.min_reader_version;
    return code;
  });
}

int tracefs_reader_time_span(tracefs_reader* r, uint64_t* first,
                             uint64_t* last) {
  return Guarded(
      r, [=](State& state) { return state.reader.TimeSpan(first, last); });
}

int tracefs_reader_seek_time(tracefs_reader* r, uint64_t time) {
  return Guarded(r, [=](State& state) { return state.reader.SeekTime(time); });
}

int tracefs_reader_seek_block(tracefs_reader* r, size_t trace, uint64_t block) {
  return Guarded(
      r, [=](State& state) { return state.reader.SeekBlock(trace, block); });
}

// --- Events

int tracefs_reader_next(tracefs_reader* r, const tracefs_event** event) {
  return Guarded(r, [=](State& state) {
    state.event.texts.clear();
    const int code =
        state.reader.NextEvent(&state.event.record, &state.event.trace);
    if (code == TRACEFS_ITEM) *event = &state.event;
    return code;
  });
}

uint32_t tracefs_field_by_name(const char* name) {
  const reader::FieldRow* const row =
      name == nullptr ? nullptr : reader::FindField(std::string_view(name));
  return row == nullptr ? 0 : row->id;
}

const char* tracefs_field_name(uint32_t field) {
  const reader::FieldRow* const row = reader::FindField(field);
  return row == nullptr ? nullptr : row->name;
}

int tracefs_field_type(uint32_t field) {
  const reader::FieldRow* const row = reader::FindField(field);
  if (row == nullptr) return 0;
  switch (row->shape) {
    case reader::Shape::kText:
    case reader::Shape::kBytes:
      return TRACEFS_TEXT;
    case reader::Shape::kSigned:
      return TRACEFS_SIGNED;
    default:
      return TRACEFS_NUMBER;
  }
}

uint32_t tracefs_field_after(uint32_t field) {
  for (const reader::FieldRow& row : reader::FieldRows()) {
    if (row.id > field) return row.id;
  }
  return 0;
}

int tracefs_event_number(const tracefs_event* event, uint32_t field,
                         uint64_t* value) {
  const reader::FieldRow* const row = reader::FindField(field);
  if (event == nullptr || row == nullptr) return 0;
  return reader::NumberOf(*row, *event->record, event->trace, value) ? 1 : 0;
}

int tracefs_event_text(const tracefs_event* event, uint32_t field,
                       const char** text, size_t* size) {
  const reader::FieldRow* const row = reader::FindField(field);
  if (event == nullptr || row == nullptr) return 0;
  try {
    std::string_view found;
    if (!reader::TextOf(*row, *event->record,
                        event->paths[field == TRACEFS_FIELD_NEW_PATH],
                        &found)) {
      return 0;
    }
    const reader::TextHook& hook = StateOf(event)->reader.on_text();
    std::string_view other;
    if (hook && row->field && hook(field, found, &other)) {
      found = event->texts.emplace_back(other);
    }
    *text = found.data();
    *size = found.size();
    return 1;
  } catch (...) {
    StateOf(event)->reader.FailCode(TRACEFS_SYSTEM, "out of memory");
    return 0;
  }
}

const char* tracefs_event_op(const tracefs_event* event) {
  // A literal.
  return tracefs::OpName(event->record->event.op).data();
}

int tracefs_event_extra(const tracefs_event* event, size_t number,
                        tracefs_argument* argument) {
  if (event == nullptr || number >= event->record->extra.size()) {
    return TRACEFS_END;
  }
  return Guarded(StateOf(event), [=](State& s) {
    const format::ExtraArgument& extra = event->record->extra[number];
    FillArgument(s, event->trace, extra.id, extra.has_length, extra.value,
                 argument);
    return static_cast<int>(TRACEFS_ITEM);
  });
}

// --- Processes

int tracefs_reader_next_process(tracefs_reader* r, tracefs_process* process) {
  return Guarded(r, [=](State& state) {
    const tracefs::ProcessRecord* record = nullptr;
    size_t trace = 0;
    const int code = state.reader.NextProcess(&record, &trace);
    if (code == TRACEFS_ITEM) {
      *process = reader::ViewOf(*record, trace, &state.pipes);
    }
    return code;
  });
}

// --- Messages and blocks

int tracefs_reader_next_message(tracefs_reader* r, tracefs_message* message) {
  return Guarded(r, [=](State& state) {
    const int code = state.reader.NextMessage(&state.message);
    if (code != TRACEFS_ITEM) return code;
    const format::BlockDecoder& block = state.reader.message_block();
    *message = {};
    message->id = state.message.msg_id;
    message->trace = state.reader.message_trace();
    auto [at, added] =
        state.message_names.try_emplace({message->trace, message->id});
    if (added) {
      at->second = state.reader.trace(message->trace)
                       .context()
                       .NameOfMessage(state.message.msg_id);
    }
    message->name = at->second.c_str();
    message->block = block.sequence();
    message->offset = block.offset();
    message->bytes = block.bytes().data() + state.message.offset;
    message->size =
        format::kMessageHeaderBytes + state.message.arguments.size();
    return code;
  });
}

int tracefs_reader_next_argument(tracefs_reader* r, size_t* at,
                                 tracefs_argument* argument) {
  return Guarded(r, [=](State& state) {
    const ByteSpan all = state.message.arguments;
    if (*at >= all.size()) return static_cast<int>(TRACEFS_END);
    const size_t trace = state.reader.message_trace();
    format::ArgumentCursor in(all.subspan(*at),
                              state.reader.trace(trace).context().widths);
    format::Argument found;
    // What cannot be read ends its message, and nothing else.
    if (!in.Next(&found)) return static_cast<int>(TRACEFS_BAD_DATA);
    *at = static_cast<size_t>(found.value.data() + found.value.size() -
                              all.data());
    FillArgument(state, trace, found.id, found.has_length, found.value,
                 argument);
    return static_cast<int>(TRACEFS_ITEM);
  });
}

int tracefs_reader_next_block(tracefs_reader* r, tracefs_block* block) {
  return Guarded(r,
                 [=](State& state) { return state.reader.NextBlock(block); });
}

const char* tracefs_reader_version(void) {
  return TRACEFS_READER_LIBRARY_VERSION;
}
unsigned tracefs_reader_format_version(void) { return format::kFormatVersion; }

}  // extern "C"
