// What the handles of the C interface stand for (tracefs_reader.h), and how
// its calls keep in what the library throws.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/format/block_decoder.h"
#include "tracefs/reader/process_view.h"
#include "tracefs/reader/reader.h"
#include "tracefs/reader/tracefs_reader.h"

struct tracefs_options {
  tracefs::reader::ReaderOptions options;
  std::string message;
};

struct tracefs_event {
  const tracefs::format::Record* record = nullptr;
  size_t trace = 0;
  void* state = nullptr;  // a State, that it is part of
  // Texts that were asked for, where they do not stand in the block.
  mutable std::array<tracefs::PathBuffer, 2> paths;
  mutable std::deque<std::string> texts;
};

struct tracefs_report {
  tracefs::reader::Finding finding;
  mutable std::string text;
};

namespace tracefs::c_api {

// What a reader and its streams have in common.
struct State {
  explicit State(const reader::ReaderOptions& options) : reader(options) {
    event.state = this;
  }

  reader::Reader reader;
  tracefs_event event;
  format::Message message;
  std::vector<tracefs_pipe> pipes;  // of the process record that came last
  // Names that were handed out, with their NULs.
  std::map<std::pair<size_t, uint32_t>, std::string> argument_names;
  std::map<std::pair<size_t, uint32_t>, std::string> message_names;
};

template <typename Call>
int Guarded(tracefs_options* options, Call call) noexcept {
  if (options == nullptr) return TRACEFS_BAD_USE;
  try {
    const Status status = call(options->options);
    if (status.ok()) return TRACEFS_ITEM;
    options->message = status.message();
    return tracefs::ExitStatus(status) == 3 ? TRACEFS_SYSTEM : TRACEFS_BAD_USE;
  } catch (...) {
    options->message = "out of memory";  // short: needs none
    return TRACEFS_SYSTEM;
  }
}

}  // namespace tracefs::c_api

struct tracefs_reader {
  std::shared_ptr<tracefs::c_api::State> state;
};

namespace tracefs::c_api {

template <typename Call>
int Guarded(State* state, Call call) noexcept {
  try {
    return call(*state);
  } catch (...) {
    return state->reader.FailCode(TRACEFS_SYSTEM, "out of memory");
  }
}
template <typename Call>
int Guarded(tracefs_reader* handle, Call call) noexcept {
  if (handle == nullptr) return TRACEFS_BAD_USE;
  return Guarded(handle->state.get(), call);
}

}  // namespace tracefs::c_api
