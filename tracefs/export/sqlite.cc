#include "tracefs/export/sqlite.h"

#include <sqlite3.h>

#include <array>
#include <bit>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/base/version.h"
#include "tracefs/export/sqlite_schema.h"
#include "tracefs/feed/aggregate_lines.h"
#include "tracefs/feed/alarm_lines.h"
#include "tracefs/feed/process_lines.h"

namespace tracefs {
namespace {

using format::Record;

// Paths and processes that are remembered; beyond it they are forgotten and
// those that come again get a second row.
constexpr size_t kMaxRemembered = 1'000'000;
constexpr size_t kMaxRememberedBytes = size_t{128} << 20;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
  }
};
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

// TextNumbers of texts, as they come.
class TextNumbers {
 public:
  // 0 if it is new; then Add gives it one.
  int64_t Find(std::string_view text) const {
    const auto found = numbers_.find(text);
    return found == numbers_.end() ? 0 : found->second;
  }
  int64_t Add(std::string_view text) {
    if (numbers_.size() >= kMaxRemembered || bytes_ > kMaxRememberedBytes) {
      numbers_.clear();
      bytes_ = 0;
    }
    bytes_ += text.size() + 64;
    numbers_.emplace(text, ++last_);
    return last_;
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> numbers_;
  size_t bytes_ = 0;
  int64_t last_ = 0;
};

class SqliteExporter final : public Exporter {
 public:
  explicit SqliteExporter(const ExportOptions& options)
      : path_(options.path), indices_(options.Choice("indices") == "yes") {
    Open();
  }

  void Write(const Record& record) override {
    if (!status_.ok()) return;
    const TableRow row(record);
    const Event& event = record.event;
    const int64_t process = ProcessOf(record);
    const int64_t path = PathOf(row.path());
    const int64_t path2 =
        PathOf(row.path2().empty() ? event.new_name : row.path2());
    sqlite3_stmt* const insert = insert_op_.get();
    sqlite3_clear_bindings(insert);
    for (uint64_t bits = event.present & fields_; bits != 0; bits &= bits - 1) {
      const auto field = static_cast<size_t>(std::countr_zero(bits));
      sqlite3_bind_int64(insert, by_field_[field],
                         static_cast<int64_t>(event.value[field]));
    }
    for (const Slot& slot : slots_) Bind(slot, row);
    if (process != 0) sqlite3_bind_int64(insert, process_slot_, process);
    if (path != 0) sqlite3_bind_int64(insert, path_slot_, path);
    if (path2 != 0) sqlite3_bind_int64(insert, path2_slot_, path2);
    Step(insert);
  }

  void WriteAlarm(const format::AlarmRecord& record) override {
    if (!status_.ok()) return;
    const Record* const operation = record.operation;
    sqlite3_stmt* const insert = insert_alarm_.get();
    sqlite3_clear_bindings(insert);
    if (operation != nullptr) {
      sqlite3_bind_int64(insert, 1, static_cast<int64_t>(operation->real_ns));
    }
    sqlite3_bind_int64(insert, 2, record.tracer_id);
    BindText(insert, 3, record.title);
    sqlite3_bind_int64(insert, 4, static_cast<int64_t>(record.count));
    BindText(insert, 5, AlarmSentence(record));
    Step(insert);
  }
  // Told in their order in time; a table needs none.
  std::string AlarmLine(const format::AlarmRecord& record) override {
    WriteAlarm(record);
    return {};
  }

  void WriteAggregate(const format::AggregateRecord& record) override {
    if (!status_.ok()) return;
    sqlite3_stmt* const insert = insert_count_.get();
    sqlite3_clear_bindings(insert);
    std::string key;
    for (const format::AggregateKeyPart& part : record.key) {
      if (!key.empty()) key += ' ';
      key += format::AggregateKeyLabel(part.arg_id);
      key += '=' + AggregateKeyText(part);
    }
    const auto number = [insert](int at, uint64_t value) {
      sqlite3_bind_int64(insert, at, static_cast<int64_t>(value));
    };
    number(1, record.real_from_ns);
    number(2, record.real_to_ns);
    number(3, record.tracer_id);
    number(4, record.aggregate);
    number(5, record.total ? 1 : 0);
    BindText(insert, 6, key);
    number(7, record.other ? 1 : 0);
    number(8, record.count);
    if (record.errors) number(9, *record.errors);
    if (record.bytes) number(10, *record.bytes);
    if (record.latency.present) {
      number(11, record.latency.sum);
      number(12, record.latency.max);
    }
    Step(insert);
  }

  void WriteProcess(const ProcessRecord& record) override {
    if (!status_.ok()) return;
    sqlite3_stmt* const insert = insert_event_.get();
    sqlite3_clear_bindings(insert);
    const auto number = [insert](int at, uint64_t value) {
      sqlite3_bind_int64(insert, at, static_cast<int64_t>(value));
    };
    const auto text = [&](int at, std::string_view value) {
      if (!value.empty()) BindText(insert, at, value);
    };
    number(1, record.real_ns);
    number(2, record.tracer_id);
    text(3, ProcessKindName(record.kind));
    number(4, record.process.pid);
    if (record.tid != 0) number(5, record.tid);
    if (record.ppid != 0) number(6, record.ppid);
    if (record.child.pid != 0) number(7, record.child.pid);
    if (record.exit_code) number(8, *record.exit_code);
    if (record.signal) text(9, SignalName(*record.signal));
    text(10, record.comm);
    text(11, record.program);
    text(12, record.exe);
    text(13, record.cwd);
    // All there is, as JSON Lines have it.
    std::string json = ProcessJson(record);
    json.pop_back();
    sqlite3_bind_text(insert, 14, json.data(), static_cast<int>(json.size()),
                      SQLITE_TRANSIENT);
    Step(insert);
  }

  void Summarize(const ExportSummary& summary) override {
    if (!status_.ok()) return;
    const Statement meta = Prepare("INSERT INTO meta VALUES (?,?,?)");
    const Statement loss = Prepare("INSERT INTO losses VALUES (?,?,?)");
    if (!status_.ok()) return;
    const auto say = [&](std::string_view trace, std::string_view key,
                         std::string_view value) {
      BindText(meta.get(), 1, trace);
      BindText(meta.get(), 2, key);
      BindText(meta.get(), 3, value);
      Step(meta.get());
    };
    say("", "tracefs.version", kVersion);
    if (!summary.filter.empty()) say("", "tracefs.filter", summary.filter);
    for (const format::TraceContext* trace : summary.traces) {
      for (const auto& [key, value] : trace->description.header.properties) {
        say(trace->name, key, value);
      }
      const auto lose = [&](std::string_view reason, uint64_t count) {
        if (count == 0) return;
        BindText(loss.get(), 1, trace->name);
        BindText(loss.get(), 2, reason);
        sqlite3_bind_int64(loss.get(), 3, static_cast<int64_t>(count));
        Step(loss.get());
      };
      const format::ReadStats& stats = trace->stats;
      for (const auto& [reason, count] : stats.losses) lose(reason, count);
      lose("unreadable blocks", stats.undecodable_blocks);
      lose("missing blocks", stats.missing_blocks);
      lose("missing operations", stats.MissingEvents());
      lose("damaged bytes", stats.damaged_bytes);
      lose("cut bytes", stats.cut_bytes);
    }
  }

  void Finish() override {
    if (indices_) Execute(kSqliteIndices);
    Execute("COMMIT");
    for (Statement* s : {&insert_op_, &insert_path_, &insert_process_,
                         &insert_alarm_, &insert_count_, &insert_event_}) {
      s->reset();
    }
    if (sqlite3_close(database_.release()) != SQLITE_OK && status_.ok()) {
      status_ = Status::SystemSaid(0, "SQLite: it was not closed");
    }
  }

  Status status() const override { return status_; }

 private:
  struct Slot {
    const Column* column;
    int number;
  };

  void Open() {
    sqlite3* database = nullptr;
    const int result = sqlite3_open_v2(
        path_.c_str(), &database,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
        nullptr);
    database_.reset(database);
    if (result != SQLITE_OK) {
      Fail();
      return;
    }
    // It is under another name until it is whole: nothing to roll back to.
    Execute("PRAGMA journal_mode = OFF");
    Execute("PRAGMA synchronous = OFF");
    Execute("PRAGMA locking_mode = EXCLUSIVE");
    Execute("PRAGMA page_size = 16384");
    Execute("PRAGMA cache_size = -65536");
    Execute("PRAGMA temp_store = FILE");
    Execute("BEGIN");
    std::string columns;
    std::string marks;
    by_field_.fill(0);
    int number = 0;
    for (const SqliteColumn& c : SqliteOperationColumns()) {
      ++number;
      columns += (columns.empty() ? "" : ", ") + c.name + ' ' + c.type;
      marks += marks.empty() ? "?" : ",?";
      if (c.column == nullptr) {
        (c.name == "process" ? process_slot_
         : c.name == "path"  ? path_slot_
                             : path2_slot_) = number;
      } else if (c.column->source == ColumnSource::kField &&
                 IsNumeric(c.column->field) &&
                 c.column->type != ColumnType::kWord &&
                 c.column->type != ColumnType::kFlag) {
        by_field_[Index(c.column->field)] = number;
        fields_ |= Bit(c.column->field);
      } else {
        slots_.push_back({c.column, number});
      }
    }
    Execute("CREATE TABLE ops (" + columns + ") STRICT");
    Execute(kSqliteTables);
    Execute(SqliteOperationsView());
    Execute(kSqliteViews);
    insert_op_ = Prepare("INSERT INTO ops VALUES (" + marks + ")");
    insert_path_ = Prepare("INSERT INTO paths VALUES (?,?,?)");
    insert_process_ = Prepare("INSERT INTO processes VALUES (?,?,?,?,?,?,?)");
    insert_alarm_ = Prepare("INSERT INTO alarms VALUES (?,?,?,?,?)");
    insert_event_ = Prepare(
        "INSERT INTO process_events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    insert_count_ =
        Prepare("INSERT INTO counted VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
  }

  void Fail() {
    if (!status_.ok()) return;
    sqlite3* const database = database_.get();
    const int code = sqlite3_errcode(database) & 0xff;
    const int error = code == SQLITE_FULL ? ENOSPC : 0;
    status_ =
        Status::SystemSaid(error, "cannot write the database: " +
                                      std::string(sqlite3_errmsg(database)));
  }

  void Execute(const std::string& sql) {
    if (!status_.ok()) return;
    if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) !=
        SQLITE_OK) {
      Fail();
    }
  }

  Statement Prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (status_.ok() && sqlite3_prepare_v3(database_.get(), sql.c_str(), -1,
                                           SQLITE_PREPARE_PERSISTENT,
                                           &statement, nullptr) != SQLITE_OK) {
      Fail();
    }
    return Statement(statement);
  }

  void Step(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) Fail();
    sqlite3_reset(statement);
  }

  // `text` must outlive the step.
  static void BindStatic(sqlite3_stmt* statement, int at,
                         std::string_view text) {
    sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()),
                      SQLITE_STATIC);
  }
  static void BindText(sqlite3_stmt* statement, int at, std::string_view text) {
    const std::string escaped = EscapedText(text);
    sqlite3_bind_text(statement, at, escaped.data(),
                      static_cast<int>(escaped.size()), SQLITE_TRANSIENT);
  }

  void Bind(const Slot& slot, const TableRow& row) {
    sqlite3_stmt* const insert = insert_op_.get();
    const Cell cell = row.Get(*slot.column, &scratch_);
    if (slot.column->type == ColumnType::kFlag) {
      sqlite3_bind_int64(insert, slot.number, cell.present ? 1 : 0);
      return;
    }
    if (!cell.present) return;
    switch (slot.column->type) {
      case ColumnType::kWord:
        // What was made for this cell goes with the next one.
        sqlite3_bind_text(insert, slot.number, cell.text.data(),
                          static_cast<int>(cell.text.size()),
                          cell.text.data() == scratch_.data() ? SQLITE_TRANSIENT
                                                              : SQLITE_STATIC);
        return;
      case ColumnType::kText:
        if (cell.text.data() == scratch_.data() || NeedsEscapes(cell.text)) {
          BindText(insert, slot.number, cell.text);
        } else {
          BindStatic(insert, slot.number, cell.text);
        }
        return;
      case ColumnType::kBytes:
        sqlite3_bind_blob(insert, slot.number, cell.text.data(),
                          static_cast<int>(cell.text.size()), SQLITE_STATIC);
        return;
      default:
        sqlite3_bind_int64(insert, slot.number,
                           static_cast<int64_t>(cell.number));
    }
  }

  int64_t PathOf(std::string_view path) {
    if (path.empty()) return 0;
    if (const int64_t known = paths_.Find(path); known != 0) return known;
    const int64_t number = paths_.Add(path);
    sqlite3_stmt* const insert = insert_path_.get();
    sqlite3_clear_bindings(insert);
    sqlite3_bind_int64(insert, 1, number);
    if (NeedsEscapes(path)) {
      BindText(insert, 2, path);
      sqlite3_bind_blob(insert, 3, path.data(), static_cast<int>(path.size()),
                        SQLITE_STATIC);
    } else {
      BindStatic(insert, 2, path);
    }
    Step(insert);
    return number;
  }

  int64_t ProcessOf(const Record& record) {
    const Event& event = record.event;
    constexpr std::array kIds = {Field::kPid, Field::kPpid, Field::kSid,
                                 Field::kPgid};
    constexpr uint64_t kAny = Bit(Field::kPid) | Bit(Field::kPpid) |
                              Bit(Field::kSid) | Bit(Field::kPgid);
    const std::string_view host =
        record.trace == nullptr
            ? std::string_view()
            : record.trace->description.header.Get("host.name");
    const std::string_view comm = record.Text(Field::kComm);
    if ((event.present & kAny) == 0 && comm.empty() && host.empty()) return 0;
    key_.assign(reinterpret_cast<const char*>(&record.trace),
                sizeof record.trace);
    for (const Field id : kIds) {
      const uint64_t value = event.Has(id) ? event.Get(id) : UINT64_MAX;
      key_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    key_ += comm;
    if (const int64_t known = processes_.Find(key_); known != 0) return known;
    const int64_t number = processes_.Add(key_);
    sqlite3_stmt* const insert = insert_process_.get();
    sqlite3_clear_bindings(insert);
    sqlite3_bind_int64(insert, 1, number);
    if (!host.empty()) BindText(insert, 2, host);
    for (size_t i = 0; i < kIds.size(); ++i) {
      if (!event.Has(kIds[i])) continue;
      sqlite3_bind_int64(insert, static_cast<int>(3 + i),
                         static_cast<int64_t>(event.Get(kIds[i])));
    }
    if (!comm.empty()) BindText(insert, 7, comm);
    Step(insert);
    return number;
  }

  const std::string path_;
  const bool indices_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  // They go before the database.
  Statement insert_op_, insert_path_, insert_process_, insert_alarm_,
      insert_count_, insert_event_;
  std::array<int, kNumericFieldCount> by_field_{};
  uint64_t fields_ = 0;
  std::vector<Slot> slots_;
  int process_slot_ = 0, path_slot_ = 0, path2_slot_ = 0;
  TextNumbers paths_;
  TextNumbers processes_;
  std::string key_;
  std::string scratch_;
  Status status_;
};

}  // namespace

std::unique_ptr<Exporter> MakeSqliteExporter(OutputBuffer&,
                                             const ExportOptions& options) {
  return std::make_unique<SqliteExporter>(options);
}

}  // namespace tracefs
