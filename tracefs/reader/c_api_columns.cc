// The C interface: columns, as a stream of Arrow.
#include <errno.h>

#include <memory>
#include <utility>
#include <vector>

#include "tracefs/reader/arrow.h"
#include "tracefs/reader/c_api_state.h"

namespace reader = tracefs::reader;
using tracefs::c_api::Guarded;
using tracefs::c_api::State;

extern "C" {

namespace {

struct Stream {
  std::shared_ptr<State> state;
  reader::Batch::Specs specs;
};

Stream* StreamOf(ArrowArrayStream* stream) {
  return static_cast<Stream*>(stream->private_data);
}

int ErrnoOf(int code) {
  switch (code) {
    case TRACEFS_SYSTEM:
      return EIO;
    case TRACEFS_CANCELLED:
      return ECANCELED;
    case TRACEFS_WAIT:
      return EAGAIN;
    default:
      return EINVAL;
  }
}

int StreamSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  try {
    reader::ExportSchema(*StreamOf(stream)->specs, out);
    return 0;
  } catch (...) {
    return ENOMEM;
  }
}

int StreamNext(ArrowArrayStream* stream, ArrowArray* out) {
  Stream* const s = StreamOf(stream);
  *out = {};
  try {
    std::shared_ptr<reader::Batch> batch;
    const int code = s->state->reader.NextBatch(s->specs, &batch);
    if (code == TRACEFS_END) return 0;
    if (code != TRACEFS_ITEM) return ErrnoOf(code);
    reader::ExportBatch(std::move(batch), out);
    return 0;
  } catch (...) {
    s->state->reader.FailCode(TRACEFS_SYSTEM, "out of memory");
    return ENOMEM;
  }
}

const char* StreamError(ArrowArrayStream* stream) {
  return StreamOf(stream)->state->reader.message().c_str();
}

void StreamRelease(ArrowArrayStream* stream) {
  delete StreamOf(stream);
  stream->release = nullptr;
}

}  // namespace

int tracefs_reader_columns(tracefs_reader* r, const char* columns,
                           ArrowArrayStream* stream) {
  return Guarded(r, [=](State& state) {
    if (state.reader.status() < 0) return state.reader.status();
    auto specs = reader::ParseColumns(columns == nullptr ? "" : columns);
    if (!specs.ok()) {
      return state.reader.FailCode(TRACEFS_BAD_USE, specs.status().message());
    }
    auto made = std::make_unique<Stream>();
    made->state = r->state;
    made->specs = std::make_shared<const std::vector<reader::ColumnSpec>>(
        *std::move(specs));
    *stream = {};
    stream->get_schema = &StreamSchema;
    stream->get_next = &StreamNext;
    stream->get_last_error = &StreamError;
    stream->release = &StreamRelease;
    stream->private_data = made.release();
    return static_cast<int>(TRACEFS_ITEM);
  });
}

}  // extern "C"
