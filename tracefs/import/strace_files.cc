#include "tracefs/import/strace_files.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tracefs/import/strace_line.h"

namespace tracefs::import {

struct StraceFiles::Reading {
  Reading(UniqueFd of, uint64_t offset)
      : fd(std::move(of)), lines(fd.get(), offset) {}

  UniqueFd fd;
  LineReader lines;
  std::string_view line;
};

StraceFiles::StraceFiles(std::vector<StraceFile> files)
    : files_(std::move(files)),
      readings_(files_.size()),
      resume_at_(files_.size()),
      ns_(files_.size()) {}

StraceFiles::~StraceFiles() = default;

void StraceFiles::Push(uint64_t ns, size_t index) {
  next_.emplace_back(ns, index);
  std::ranges::push_heap(next_, std::greater<>());
}

// Opens a file where it goes on, and has its next line read.
bool StraceFiles::Open(size_t index) {
  if (open_.size() >= kMostOpen) Close(open_.front());
  Result<UniqueFd> fd = files_[index].open();
  if (!fd.ok()) {
    status_ = fd.status();
    return false;
  }
  readings_[index] =
      std::make_unique<Reading>(*std::move(fd), resume_at_[index]);
  open_.push_back(index);
  return Advance(index);
}

// Its next line is read again when it is opened again.
void StraceFiles::Close(size_t index) {
  std::unique_ptr<Reading>& reading = readings_[index];
  too_long_ += reading->lines.too_long();
  resume_at_[index] = reading->lines.line_offset();
  reading.reset();
  std::erase(open_, index);
}

// Reads the next line of a file. False at its end.
bool StraceFiles::Advance(size_t index) {
  Reading& reading = *readings_[index];
  if (reading.lines.Next(&reading.line)) {
    if (const auto ns = TimeOfStraceLine(reading.line)) ns_[index] = *ns;
    return true;
  }
  if (status_.ok()) status_ = reading.lines.status();
  Close(index);
  return false;
}

Status StraceFiles::Rewind() {
  too_long_ = 0;
  last_ = SIZE_MAX;
  next_.clear();
  open_.clear();
  for (auto& reading : readings_) reading.reset();
  std::ranges::fill(resume_at_, 0);
  std::ranges::fill(ns_, 0);
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
  if (last_ != SIZE_MAX && Advance(last_)) Push(ns_[last_], last_);
  while (status_.ok() && !next_.empty()) {
    std::ranges::pop_heap(next_, std::greater<>());
    last_ = next_.back().second;
    next_.pop_back();
    if (readings_[last_] == nullptr && !Open(last_)) continue;
    *line = readings_[last_]->line;
    *tid = files_[last_].tid;
    return true;
  }
  last_ = SIZE_MAX;
  return false;
}

}  // namespace tracefs::import
