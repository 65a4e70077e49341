// LifeAnalysis: an answer that is made of what became of each file.
#pragma once

#include <string>
#include <vector>

#include "tracefs/query/analysis.h"
#include "tracefs/query/file_lives.h"

namespace tracefs::query {

class LifeAnalysis : public Analysis {
 public:
  LifeAnalysis()
      : lives_([this](const FileLife& life, const FileLife* by) {
          Ended(life, by);
        }) {}
  void Take(const format::Record& record, size_t /*trace*/) override {
    lives_.Take(record);
  }
  bool follows_files() const override { return true; }
  void Pass(const format::Record& record, size_t /*trace*/) override {
    lives_.Take(record, /*counts=*/false);
  }
  void TakeProcess(const ProcessRecord& record) override {
    lives_.TakeProcess(record);
  }
  std::vector<Table> Finish() override {
    lives_.Finish();
    std::vector<Table> tables = Tables();
    if (const std::string note = lives_.Note(); !note.empty()) {
      tables.back().notes.push_back(note);
    }
    if (rows_left_out_ != 0) {
      tables.back().notes.push_back(std::to_string(rows_left_out_) +
                                    " more had no room");
    }
    return tables;
  }

 protected:
  // Of each file that was used, as FileLives tells it.
  virtual void Ended(const FileLife& life, const FileLife* by) = 0;
  // When all have ended.
  virtual std::vector<Table> Tables() = 0;
  // To be counted by Ended.
  uint64_t rows_left_out_ = 0;

 private:
  FileLives lives_;
};

}  // namespace tracefs::query
