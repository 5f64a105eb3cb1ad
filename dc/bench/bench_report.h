// What a benchmark has found: rows of samples, one a round, as a table for people and as JSON for programs. Thread-safety: none.
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

  // A sample of the row with this name and unit, which is made by its first sample.
  void Add(std::string_view name, std::string_view unit, double sample);

  // One line a row: name, median, unit, least and largest sample, number of samples.
  std::string Text() const;
  // {"rows":[{"name":..,"unit":..,"median":..,"samples":[..]}]}. REQUIRES: names without quotes.
  std::string Json() const;

  // In the order of their first samples.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_REPORT_H_
