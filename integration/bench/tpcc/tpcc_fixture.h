// The records of a small TPC-C in a map, for tests.
#ifndef INTEGRATION_BENCH_TPCC_TPCC_FIXTURE_H_
#define INTEGRATION_BENCH_TPCC_TPCC_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "integration/bench/model_session.h"
#include "integration/bench/row.h"
#include "integration/bench/tpcc/consistency.h"
#include "integration/bench/tpcc/population.h"
#include "integration/bench/tpcc/schema.h"

namespace deut::bench::tpcc {

constexpr Scale kSmall{.warehouses = 2, .items = 200, .customers = 30};

class TpccFixture : public ::testing::Test {
 protected:
  TpccFixture() {
    for (uint32_t part = 0; part < PopulationParts(kSmall); ++part) {
      const Status loaded = Populate(session_, kSmall, part);
      EXPECT_TRUE(loaded.ok()) << loaded.ToString();
    }
  }

  template <typename Row>
  Row Read(const std::string& key) {
    const auto it = session_.records().find(key);
    EXPECT_NE(it, session_.records().end()) << key;
    if (it == session_.records().end()) return Row{};
    const Result<Row> row = RowOf<Row>(key, it->second);
    EXPECT_TRUE(row.ok()) << row.status().ToString();
    return row.ok() ? *row : Row{};
  }
  template <typename Row>
  void Write(const std::string& key, const Row& row) {
    session_.records()[key] = std::string(BytesOf(row));
  }
  size_t RowsOf(std::string_view prefix) {
    size_t rows = 0;
    for (auto it = session_.records().lower_bound(prefix);
         it != session_.records().end() && it->first.starts_with(prefix); ++it)
      ++rows;
    return rows;
  }
  Status Check() { return CheckConsistency(session_, kSmall); }

  ModelSession session_;
};

}  // namespace deut::bench::tpcc

#endif  // INTEGRATION_BENCH_TPCC_TPCC_FIXTURE_H_
