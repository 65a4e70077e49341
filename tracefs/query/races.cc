// Reads that race with a writer, by the graph of who used which file on a
// machine.
#include "tracefs/build/races.h"

#include <algorithm>
#include <map>

#include "tracefs/build/build_graph.h"
#include "tracefs/build/record_step.h"
#include "tracefs/query/analyses.h"

namespace tracefs::query {
namespace {

class Races final : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    if (const build::FileStep* const step = steps_.Of(record)) {
      builders_[step->process.machine].Take(*step);
    }
  }
  void TakeProcess(const ProcessRecord& record) override {
    builders_[record.process.machine].Take(record);
  }

  std::vector<Table> Finish() override {
    Table table;
    table.columns = {
        {"path"}, {"race"}, {"reader"}, {"writer"}, {"gap", Unit::kDuration}};
    if (builders_.empty()) builders_[0];  // has notes, too
    for (auto& [machine, builder] : builders_) {
      AddRaces(builder.Finish(), &table);
    }
    return {table};
  }

 private:
  static void AddRaces(const build::BuildGraph& graph, Table* table) {
    const build::Races races = FindRaces(graph);
    for (const build::Race& race : races.list) {
      table->rows.push_back({Value::Text(graph.paths().Text(race.path)),
                             Value::Text(build::RaceName(race.kind)),
                             Value::Text(graph.NameOfExecution(race.reader)),
                             Value::Text(graph.NameOfExecution(race.writer)),
                             Value::Number(race.gap_ns)});
    }
    for (const std::string& note : races.Notes()) {
      if (std::ranges::count(table->notes, note) == 0) {
        table->notes.push_back(note);
      }
    }
  }

  std::map<uint32_t, build::GraphBuilder> builders_;  // by machine
  build::RecordSteps steps_;
};

}  // namespace

std::unique_ptr<Analysis> MakeRaces(const AnalysisOptions& /*options*/) {
  return std::make_unique<Races>();
}

}  // namespace tracefs::query
