// What SQLite alone takes for rows like those of tracefs-dump --format sqlite:
// nothing is decoded, no text is stored, no path looked up. No writer of such a
// table can be faster.
//
//   sqlite_rows FILE [--rows 1000000] [--columns 61] [--values 24]
//
// FILE is made, and must not be there. Prints rows a second of processor time.
// Exit status: 0 done, 1 SQLite refused something, 2 wrong usage.
#include <sqlite3.h>

#include <boost/program_options.hpp>
#include <ctime>
#include <iostream>
#include <string>

namespace po = boost::program_options;

int main(int argc, char** argv) {
  int rows = 0;
  int columns = 0;
  int values = 0;
  std::string path;
  po::options_description options;
  options.add_options()("file", po::value(&path)->required())(
      "rows", po::value(&rows)->default_value(1'000'000))(
      "columns", po::value(&columns)->default_value(61))(
      "values", po::value(&values)->default_value(24));
  po::positional_options_description first;
  first.add("file", 1);
  try {
    po::variables_map given;
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional(first)
                  .run(),
              given);
    po::notify(given);
  } catch (const po::error& e) {
    std::cerr << "sqlite_rows: " << e.what() << '\n';
    return 2;
  }
  sqlite3* database = nullptr;
  std::string sql =
      "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA "
      "locking_mode = EXCLUSIVE; PRAGMA page_size = 16384; BEGIN; CREATE TABLE "
      "ops (c0 INTEGER";
  std::string insert = "INSERT INTO ops VALUES (?";
  for (int i = 1; i < columns; ++i) {
    sql += ", c" + std::to_string(i) + " INTEGER";
    insert += ",?";
  }
  sqlite3_stmt* statement = nullptr;
  bool good = sqlite3_open(path.c_str(), &database) == SQLITE_OK &&
              sqlite3_exec(database, (sql + ") STRICT").c_str(), nullptr,
                           nullptr, nullptr) == SQLITE_OK &&
              sqlite3_prepare_v3(database, (insert + ")").c_str(), -1,
                                 SQLITE_PREPARE_PERSISTENT, &statement,
                                 nullptr) == SQLITE_OK;
  const std::clock_t begin = std::clock();
  for (int row = 0; good && row < rows; ++row) {
    for (int i = 0; i < values; ++i) {
      sqlite3_bind_int64(statement, 1 + i * columns / values,
                         static_cast<sqlite3_int64>(row) * (i + 1));
    }
    good = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
  }
  good = good && sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr) ==
                     SQLITE_OK;
  if (!good) std::cerr << "sqlite_rows: " << sqlite3_errmsg(database) << '\n';
  const double seconds =
      static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  sqlite3_finalize(statement);
  sqlite3_close(database);
  if (good) std::cout << rows / seconds << '\n';
  return good ? 0 : 1;
}
