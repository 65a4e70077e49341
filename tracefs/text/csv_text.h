// Text in a cell of CSV: the one place that knows what a spreadsheet makes of a
// cell.
//
// Escaped as for a terminal, in quotes where a comma or a quote is in it,
// quotes doubled. A spreadsheet computes what begins with = + - @ or with their
// wide forms, behind blanks or behind a semicolon as well, which separates
// cells in many countries: the character that makes it a formula is escaped as
// any other
// (\x3d1+1), so that undoing the escapes gives back every name.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// What CSV is written for.
enum class CsvReader { kSpreadsheet, kProgram };

// At most 4 bytes a byte and 2. For a program formulas stay as they are.
char* PutCsvText(char* out, std::string_view text,
                 CsvReader reader = CsvReader::kSpreadsheet);
std::string CsvText(std::string_view text,
                    CsvReader reader = CsvReader::kSpreadsheet);

// The size of the first character, if it makes a cell a formula that begins
// with blanks and it, and where it stands; size 0 if none does.
struct FormulaSign {
  size_t at = 0;
  size_t size = 0;
};
FormulaSign FindFormula(std::string_view text);

}  // namespace tracefs
