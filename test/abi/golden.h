// Reads the golden data: CSV files whose first line names the columns.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace riffle::golden {

using Row = std::map<std::string, std::string>;

inline std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
  if (line.ends_with(',')) fields.emplace_back();
  return fields;
}

inline std::vector<Row> read(const std::string& file) {
  std::ifstream in(std::string(RIFFLE_GOLDEN_DIR) + "/" + file);
  EXPECT_TRUE(in) << "cannot read " << file;
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> columns = split(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = split(line);
    EXPECT_EQ(fields.size(), columns.size()) << line;
    Row row;
    for (std::size_t i = 0; i < columns.size() && i < fields.size(); ++i) {
      row[columns[i]] = fields[i];
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace riffle::golden
