#include "tc/catalogue/catalogue.h"

#include <string>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

class CatalogueTest : public ::testing::Test {
 protected:
  static TableInfo Info(uint32_t id, std::string name, bool dropped = false) {
    return {.id = TableId{id}, .name = std::move(name), .dropped = dropped};
  }
  ReclamationDomain domain;
  Catalogue catalogue{RealRuntime(), domain};
};

TEST_F(CatalogueTest, LoadsWhatTheDcHolds) {
  ASSERT_TRUE(catalogue.Load({Info(3, "c"), Info(1, "a"), Info(9, "a", true)}).ok());
  EXPECT_EQ(catalogue.Find(TableId{3})->name(), "c");
  EXPECT_EQ(catalogue.FindByName("a").value()->id(), TableId{1});
  EXPECT_EQ(catalogue.Find(TableId{9}), nullptr) << "dropped";
  EXPECT_EQ(catalogue.Find(TableId{2}), nullptr);
  EXPECT_EQ(catalogue.Find(TableId{UINT32_MAX}), nullptr);
  EXPECT_EQ(catalogue.tables().size(), 2u);
  // Ids go on above all that were ever used, dropped ones too.
  EXPECT_EQ(catalogue.ReserveId("new").value(), TableId{10});
}

TEST_F(CatalogueTest, RefusesAListThatCannotBe) {
  EXPECT_EQ(catalogue.Load({Info(0, "zero")}).code(), ErrorCode::kCorruption);
  EXPECT_EQ(catalogue.Load({Info(Catalogue::kMaxTables, "big")}).code(), ErrorCode::kCorruption);
  EXPECT_EQ(catalogue.Load({Info(1, "x"), Info(2, "x")}).code(), ErrorCode::kCorruption);
  EXPECT_EQ(catalogue.Load({Info(5, "y"), Info(5, "z")}).code(), ErrorCode::kCorruption);
}

TEST_F(CatalogueTest, NamesAreReservedUntilCancelled) {
  const TableId first = catalogue.ReserveId("t").value();
  EXPECT_EQ(catalogue.ReserveId("t").status().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(catalogue.FindByName("t").status().code(), ErrorCode::kNotFound) << "not there before its commit";
  catalogue.CancelReservation("t");
  const TableId second = catalogue.ReserveId("t").value();
  EXPECT_GT(second, first);
  catalogue.Add(second, "t", Position{Lsn{77}, 1});
  EXPECT_EQ(catalogue.FindByName("t").value()->created_at(), (Position{Lsn{77}, 1}));
  EXPECT_EQ(catalogue.ReserveId("").status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(catalogue.ReserveId(std::string(256, 'n')).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(catalogue.ReserveId(std::string(255, 'n')).ok());
}

TEST_F(CatalogueTest, ClosedTablesAreNotFoundAndOneCloses) {
  ASSERT_TRUE(catalogue.Load({Info(1, "t")}).ok());
  TableState* const table = catalogue.Find(TableId{1});
  EXPECT_TRUE(table->TryClose());
  EXPECT_FALSE(table->TryClose());
  EXPECT_EQ(catalogue.Find(TableId{1}), nullptr);
  EXPECT_EQ(catalogue.FindByName("t").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(catalogue.ReserveId("t").status().code(), ErrorCode::kAlreadyExists) << "the drop may fail";
  {
    ReclamationDomain::Guard guard(domain);
    table->Reopen(domain);
  }
  EXPECT_EQ(catalogue.Find(TableId{1}), table);
  EXPECT_TRUE(table->TryClose());
  catalogue.Forget(table);
  const TableId fresh = catalogue.ReserveId("t").value();
  catalogue.Add(fresh, "t", Position{});
  catalogue.Forget(table);  // again: the name is another table's by now
  EXPECT_EQ(catalogue.FindByName("t").value()->id(), fresh);
}

TEST_F(CatalogueTest, IdsRunOut) {
  ASSERT_TRUE(catalogue.Load({Info(Catalogue::kMaxTables - 1, "last")}).ok());
  EXPECT_EQ(catalogue.ReserveId("t").status().code(), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace deut::tc
