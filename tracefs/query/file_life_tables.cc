// Life times, churn, sharing and double writes: tables of the lives of files.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "tracefs/query/analyses.h"
#include "tracefs/query/life_analysis.h"
#include "tracefs/query/pictures.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/text/duration.h"

namespace tracefs::query {
namespace {

// Names and processes that are told apart; others are one row.
constexpr size_t kMostLives = size_t{1} << 17;

class Lifetimes final : public LifeAnalysis {
 public:
  explicit Lifetimes(uint64_t width_ns) : cuts_(width_ns), ages_(width_ns) {}

  void Ended(const FileLife& life, const FileLife* /*by*/) override {
    if (!life.created) return;
    const bool room = by_maker_.size() < kMostLives;
    Sums& sums = room ? by_maker_[life.maker] : by_maker_[""];
    if (!room && life.maker.empty()) ++rows_left_out_;
    for (Sums* const to : {&sums, &all_}) {
      ++to->created;
      to->written = tally::AddTo(to->written, life.written);
      if (life.end == FileLife::End::kNone) continue;
      ++(life.end == FileLife::End::kRemoved ? to->removed : to->replaced);
      to->lost = tally::AddTo(to->lost, life.written);
      if (life.open_at_end) ++to->open;
      const uint64_t age =
          life.end_ns > life.begin_ns ? life.end_ns - life.begin_ns : 0;
      to->ages.Add(age);
      to->oldest = std::max(to->oldest, age);
      if (to == &all_) ages_.Add(age);
    }
  }

  std::vector<Table> Tables() override {
    Table table;
    table.columns = {{"cname"},
                     {"created", Unit::kNumber, true},
                     {"removed", Unit::kNumber, true},
                     {"replaced", Unit::kNumber, true},
                     {"removed_open", Unit::kNumber, true},
                     {"written", Unit::kBytes, true},
                     {"thrown_away", Unit::kBytes, true},
                     {"p50", Unit::kDuration},
                     {"p90", Unit::kDuration},
                     {"max", Unit::kDuration}};
    for (const auto& [maker, sums] : by_maker_) {
      table.rows.push_back(
          RowOf(Value::Text(maker.empty() ? "?" : maker), sums));
    }
    const uint64_t gone = all_.removed + all_.replaced;
    table.notes.push_back(
        std::to_string(all_.created) + " created, " + std::to_string(gone) +
        " gone again" +
        (gone == 0 ? ""
                   : ", median life " + ExactDurationText(all_.ages.Quantile(
                                            0.5, {.max = all_.oldest}))));
    Table ages = HistogramTable(ages_, Unit::kDuration, cuts_);
    ages.title = "life times of files that are gone";
    return {table, ages};
  }

 private:
  struct Sums {
    uint64_t created = 0, removed = 0, replaced = 0, open = 0;
    uint64_t written = 0, lost = 0, oldest = 0;
    tally::SparseHistogram ages;
  };
  static Row RowOf(Value name, const Sums& s) {
    const bool any = s.removed + s.replaced != 0;
    const auto age = [&](double share) {
      return any ? Value::Number(s.ages.Quantile(share, {.max = s.oldest}))
                 : Value();
    };
    return {std::move(name),
            Value::Number(s.created),
            Value::Number(s.removed),
            Value::Number(s.replaced),
            Value::Number(s.open),
            Value::Number(s.written),
            Value::Number(s.lost),
            age(0.5),
            age(0.9),
            any ? Value::Number(s.oldest) : Value()};
  }

  std::map<std::string, Sums> by_maker_;
  const HistogramCuts cuts_;
  HistogramRows ages_;
  Sums all_;
};

class Sharing final : public LifeAnalysis {
 public:
  void Ended(const FileLife& life, const FileLife* /*by*/) override {
    uint64_t others = 0;
    for (const uint64_t n : life.by_other) others += n;
    for (size_t i = 0; i < 4; ++i) {
      same_[i] += life.by_same[i];
      other_[i] += life.by_other[i];
    }
    if (others == 0) return;
    if (shared_.size() == kMostLives) {
      ++rows_left_out_;
      return;
    }
    Row row = {Value::Text(life.Called()), Value::Text(life.readers.Names()),
               Value::Text(life.writers.Names())};
    for (const uint64_t n : life.by_other) row.push_back(Value::Number(n));
    row.push_back(Value::Number(life.read));
    row.push_back(Value::Number(life.written));
    shared_.push_back(std::move(row));
  }

  std::vector<Table> Tables() override {
    Table files;
    files.columns = {{"path"},
                     {"readers"},
                     {"writers"},
                     {"rar", Unit::kNumber, true},
                     {"raw", Unit::kNumber, true},
                     {"war", Unit::kNumber, true},
                     {"waw", Unit::kNumber, true},
                     {"read", Unit::kBytes, true},
                     {"written", Unit::kBytes, true}};
    files.rows = std::move(shared_);
    files.notes.push_back(
        "rar, raw, war, waw: reads after a read, reads after a write, writes "
        "after a read and writes after a write of another process");
    Table orders;
    orders.title = "what follows what in a file";
    orders.columns = {{"order"},
                      {"same_process", Unit::kNumber, true},
                      {"other_process", Unit::kNumber, true}};
    constexpr std::string_view kNames[] = {"rar", "raw", "war", "waw"};
    for (size_t i = 0; i < 4; ++i) {
      orders.rows.push_back({Value::Text(kNames[i]), Value::Number(same_[i]),
                             Value::Number(other_[i])});
    }
    return {files, orders};
  }

 private:
  std::vector<Row> shared_;
  std::array<uint64_t, 4> same_{};
  std::array<uint64_t, 4> other_{};
};

// Names of processes, each once.
class WriterNames {
 public:
  void Add(const FileLife::Users& users) {
    for (const auto& [pid, name] : users.kept) AddName(name);
    more_ |= users.count() > users.kept.size();
  }
  void Add(const WriterNames& other) {
    for (const std::string& name : other.names_) AddName(name);
    more_ |= other.more_;
  }
  std::string Text() const {
    std::string text;
    for (const std::string& name : names_) {
      text += (text.empty() ? "" : " ") + (name.empty() ? "?" : name);
    }
    return more_ ? text + " and more" : text;
  }

 private:
  static constexpr size_t kMost = 64;

  void AddName(const std::string& name) {
    if (std::ranges::find(names_, name) != names_.end()) return;
    if (names_.size() == kMost) {
      more_ = true;
    } else {
      names_.push_back(name);
    }
  }

  std::vector<std::string> names_;
  bool more_ = false;
};

class DoubleWrites final : public LifeAnalysis {
 public:
  void Ended(const FileLife& life, const FileLife* by) override {
    WriterNames names;
    names.Add(life.writers);
    if (life.writers.count() > 1) {
      Count("rewritten", life.Called(), life.writers.count() - 1, life.written,
            names);
    }
    if (life.end == FileLife::End::kReplaced && by != nullptr &&
        life.written != 0 && by->written != 0) {
      WriterNames both = names;
      both.Add(by->writers);
      Count("replaced", life.path, 1, life.written, both);
    }
    if (!life.created || life.nameless || life.written == 0) return;
    const std::pair place(life.mount, life.born_path);
    if (born_.size() == kMostLives && !born_.contains(place)) {
      ++rows_left_out_;
      return;
    }
    Born& born = born_[place];
    born.times += 1;
    born.bytes = tally::AddTo(born.bytes, life.written);
    born.writers.Add(names);
  }

  std::vector<Table> Tables() override {
    for (const auto& [place, born] : born_) {
      if (born.times < 2) continue;
      Count("recreated", place.second, born.times - 1, born.bytes,
            born.writers);
    }
    Table table;
    table.columns = {{"class"},
                     {"path"},
                     {"times", Unit::kNumber, true},
                     {"written", Unit::kBytes, true},
                     {"writers"}};
    std::map<std::string_view, uint64_t> classes = {
        {"rewritten", 0}, {"recreated", 0}, {"replaced", 0}};
    for (const auto& [key, sums] : found_) {
      ++classes[key.first];
      table.rows.push_back({Value::Text(key.first), Value::Text(key.second),
                            Value::Number(sums.times),
                            Value::Number(sums.bytes),
                            Value::Text(sums.writers.Text())});
    }
    std::string note;
    for (const auto& [name, count] : classes) {
      note += (note.empty() ? "" : ", ") + std::string(name) + " " +
              std::to_string(count);
    }
    table.notes.push_back(note);
    return {table};
  }

 private:
  struct Born {
    uint64_t times = 0;
    uint64_t bytes = 0;
    WriterNames writers;
  };

  void Count(std::string_view what, const std::string& path, uint64_t times,
             uint64_t bytes, const WriterNames& writers) {
    const std::pair key(std::string(what), path);
    if (found_.size() >= kMostLives && !found_.contains(key)) {
      ++rows_left_out_;
      return;
    }
    Born& sums = found_[key];
    sums.times += times;
    sums.bytes = tally::AddTo(sums.bytes, bytes);
    sums.writers.Add(writers);
  }

  std::map<std::pair<std::string, std::string>, Born> found_;
  std::map<std::pair<uint32_t, std::string>, Born> born_;  // by mount and path
};

class Churn final : public LifeAnalysis {
 public:
  void Ended(const FileLife& life, const FileLife* /*by*/) override {
    if (!life.created) return;
    std::string folder = life.born_path;
    if (!life.nameless) folder.resize(std::max<size_t>(folder.rfind('/'), 1));
    if (sums_.size() >= kMostLives && !sums_.contains({folder, life.maker})) {
      ++rows_left_out_;
      return;
    }
    Sums& s = sums_[{folder, life.maker}];
    ++s.created;
    s.written = tally::AddTo(s.written, life.written);
    if (life.end == FileLife::End::kNone) return;
    ++s.gone;
    s.lost = tally::AddTo(s.lost, life.written);
    if (life.written == 0) ++s.empty;
    if (life.reads == 0) ++s.unread;
  }
  std::vector<Table> Tables() override {
    Table table;
    table.columns = {{"dir"},
                     {"cname"},
                     {"created", Unit::kNumber, true},
                     {"gone", Unit::kNumber, true},
                     {"empty", Unit::kNumber, true},
                     {"unread", Unit::kNumber, true},
                     {"written", Unit::kBytes, true},
                     {"thrown_away", Unit::kBytes, true}};
    for (const auto& [key, s] : sums_) {
      table.rows.push_back({Value::Text(key.first), Value::Text(key.second),
                            Value::Number(s.created), Value::Number(s.gone),
                            Value::Number(s.empty), Value::Number(s.unread),
                            Value::Number(s.written), Value::Number(s.lost)});
    }
    return {table};
  }

 private:
  struct Sums {
    uint64_t created = 0, gone = 0, empty = 0, unread = 0;
    uint64_t written = 0, lost = 0;
  };
  std::map<std::pair<std::string, std::string>, Sums> sums_;
};

}  // namespace

std::unique_ptr<Analysis> MakeLifetimes(const AnalysisOptions& options) {
  return std::make_unique<Lifetimes>(options.histogram_width);
}
std::unique_ptr<Analysis> MakeSharing(const AnalysisOptions& /*options*/) {
  return std::make_unique<Sharing>();
}
std::unique_ptr<Analysis> MakeDoubleWrites(const AnalysisOptions& /*options*/) {
  return std::make_unique<DoubleWrites>();
}
std::unique_ptr<Analysis> MakeChurn(const AnalysisOptions& /*options*/) {
  return std::make_unique<Churn>();
}

}  // namespace tracefs::query
