// BenchReport: the results of a benchmark: rows of samples, one sample for each round, as a table for people and as
// JSON for programs. Thread-safety: none.
#ifndef DC_BENCH_BENCH_REPORT_H_
#define DC_BENCH_BENCH_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

namespace deut::dc::bench {

class BenchReport {
 public:
  struct Row {
    std::string name;
    std::string unit;
    std::vector<double> samples;
    double Median() const;
  };

  // Adds a sample to the row with this name and unit; the first sample creates the row.
  void Add(std::string_view name, std::string_view unit, double sample);

  // Returns one line for each row: name, median, unit, smallest and largest sample, number of samples.
  std::string Text() const;
  // Returns {"rows":[{"name":..,"unit":..,"median":..,"samples":[..]}]}. REQUIRES: names without quotes.
  std::string Json() const;

  // The rows, in the order of their first samples.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_REPORT_H_
