// Reads that race with a writer, by the graph of who used which file.
#include "tracefs/build/races.h"

#include "tracefs/build/build_graph.h"
#include "tracefs/build/record_step.h"
#include "tracefs/query/analyses.h"

namespace tracefs::query {
namespace {

class Races final : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    if (const build::FileStep* const step = steps_.Of(record)) {
      builder_.Take(*step);
    }
  }
  void TakeProcess(const ProcessRecord& record) override {
    builder_.Take(record);
  }

  std::vector<Table> Finish() override {
    const build::BuildGraph graph = builder_.Finish();
    Table table;
    table.columns = {
        {"path"}, {"race"}, {"reader"}, {"writer"}, {"gap", Unit::kDuration}};
    const build::Races races = FindRaces(graph);
    for (const build::Race& race : races.list) {
      table.rows.push_back({Value::Text(graph.paths().Text(race.path)),
                            Value::Text(build::RaceName(race.kind)),
                            Value::Text(graph.NameOfProcess(race.reader)),
                            Value::Text(graph.NameOfProcess(race.writer)),
                            Value::Number(race.gap_ns)});
    }
    table.notes = races.Notes();
    return {table};
  }

 private:
  build::GraphBuilder builder_;
  build::RecordSteps steps_;
};

}  // namespace

std::unique_ptr<Analysis> MakeRaces(const AnalysisOptions& /*options*/) {
  return std::make_unique<Races>();
}

}  // namespace tracefs::query
