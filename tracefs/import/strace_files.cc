#include "tracefs/import/strace_files.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tracefs/import/strace_line.h"

namespace tracefs::import {

struct StraceFiles::Reading {
  explicit Reading(UniqueFd of) : fd(std::move(of)), lines(fd.get()) {}

  UniqueFd fd;
  LineReader lines;
  std::string_view line;
  uint64_t ns = 0;  // of the line; without a time that of the one before
};

StraceFiles::StraceFiles(std::vector<StraceFile> files)
    : files_(std::move(files)), readings_(files_.size()) {}

StraceFiles::~StraceFiles() = default;

void StraceFiles::Push(uint64_t ns, size_t index) {
  next_.emplace_back(ns, index);
  std::ranges::push_heap(next_, std::greater<>());
}

// Reads the next line of a file. False at its end.
bool StraceFiles::Advance(size_t index) {
  std::unique_ptr<Reading>& reading = readings_[index];
  if (reading->lines.Next(&reading->line)) {
    if (const auto ns = TimeOfStraceLine(reading->line)) reading->ns = *ns;
    return true;
  }
  too_long_ += reading->lines.too_long();
  if (status_.ok()) status_ = reading->lines.status();
  reading.reset();
  return false;
}

Status StraceFiles::Rewind() {
  too_long_ = 0;
  last_ = SIZE_MAX;
  next_.clear();
  for (auto& reading : readings_) reading.reset();
  const bool is_known = !first_ns_.empty();
  first_ns_.resize(files_.size());
  for (size_t i = 0; i < files_.size(); ++i) {
    if (many() && !is_known) {
      Result<UniqueFd> fd = files_[i].open();
      if (!fd.ok()) return fd.status();
      LineReader lines(fd->get());
      std::string_view line;
      std::optional<uint64_t> ns;
      while (!ns && lines.Next(&line)) ns = TimeOfStraceLine(line);
      if (!lines.status().ok()) return lines.status();
      first_ns_[i] = ns.value_or(0);
    }
    Push(first_ns_[i], i);
  }
  return {};
}

bool StraceFiles::Next(std::string_view* line, uint32_t* tid) {
  if (last_ != SIZE_MAX && Advance(last_)) Push(readings_[last_]->ns, last_);
  while (status_.ok() && !next_.empty()) {
    std::ranges::pop_heap(next_, std::greater<>());
    last_ = next_.back().second;
    next_.pop_back();
    if (readings_[last_] == nullptr) {
      Result<UniqueFd> fd = files_[last_].open();
      if (!fd.ok()) {
        status_ = fd.status();
        return false;
      }
      readings_[last_] = std::make_unique<Reading>(*std::move(fd));
      if (!Advance(last_)) continue;
    }
    *line = readings_[last_]->line;
    *tid = files_[last_].tid;
    return true;
  }
  last_ = SIZE_MAX;
  return false;
}

}  // namespace tracefs::import
