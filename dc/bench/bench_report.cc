#include "dc/bench/bench_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace deut::dc::bench {

double BenchReport::Row::Median() const {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

void BenchReport::Add(std::string_view name, std::string_view unit, double sample) {
  auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.name == name && r.unit == unit; });
  if (row == rows_.end()) row = rows_.insert(row, Row{std::string(name), std::string(unit), {}});
  row->samples.push_back(sample);
}

std::string BenchReport::Text() const {
  std::string text;
  for (const Row& row : rows_) {
    const auto [least, largest] = std::minmax_element(row.samples.begin(), row.samples.end());
    absl::StrAppendFormat(&text, "%-46s %14.5g %-22s", row.name, row.Median(), row.unit);
    if (row.samples.size() > 1) {
      absl::StrAppendFormat(&text, " %10.4g .. %-10.4g of %d", *least, *largest, row.samples.size());
    }
    text += '\n';
  }
  return text;
}

std::string BenchReport::Json() const {
  std::string json = "{\"rows\":[";
  for (const Row& row : rows_) {
    absl::StrAppendFormat(&json, "%s{\"name\":\"%s\",\"unit\":\"%s\",\"median\":%.6g,\"samples\":[",
                          &row == &rows_.front() ? "" : ",", row.name, row.unit, row.Median());
    for (size_t i = 0; i < row.samples.size(); ++i)
      absl::StrAppendFormat(&json, "%s%.6g", i == 0 ? "" : ",", row.samples[i]);
    json += "]}";
  }
  return json + "]}\n";
}

}  // namespace deut::dc::bench
