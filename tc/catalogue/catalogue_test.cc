#include "tc/catalogue/catalogue.h"

#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

class CatalogueTest : public ::testing::Test {
 protected:
  static TableInfo Info(uint32_t id, std::string name, bool dropped = false) {
    return {.id = TableId{id}, .name = std::move(name), .dropped = dropped};
  }
  ReclamationDomain domain_;
  Catalogue catalogue_{RealRuntime(), domain_};
};

TEST_F(CatalogueTest, LoadsWhatTheDcHolds) {
  ASSERT_TRUE(catalogue_.LoadFromDc({Info(3, "c"), Info(1, "a"), Info(9, "a", true)}).ok());
  EXPECT_EQ(catalogue_.Find(TableId{3})->name(), "c");
  EXPECT_EQ(catalogue_.FindByName("a").value()->id(), TableId{1});
  EXPECT_EQ(catalogue_.Find(TableId{9}), nullptr) << "dropped";
  EXPECT_EQ(catalogue_.Find(TableId{2}), nullptr);
  EXPECT_EQ(catalogue_.Find(TableId{UINT32_MAX}), nullptr);
  EXPECT_EQ(catalogue_.tables().size(), 2u);
  // New ids are above all ids that were ever used, also those of dropped tables.
  EXPECT_EQ(catalogue_.ReserveId("new").value(), TableId{10});
}

TEST_F(CatalogueTest, RefusesAListThatCannotBe) {
  EXPECT_EQ(catalogue_.LoadFromDc({Info(0, "zero")}).code(), ErrorCode::kCorruption);
  EXPECT_EQ(catalogue_.LoadFromDc({Info(1, "x"), Info(2, "x")}).code(), ErrorCode::kCorruption);
  EXPECT_EQ(catalogue_.LoadFromDc({Info(5, "y"), Info(5, "z")}).code(), ErrorCode::kCorruption);
}

TEST_F(CatalogueTest, NamesAreReservedUntilCancelled) {
  const TableId first = catalogue_.ReserveId("t").value();
  EXPECT_EQ(catalogue_.ReserveId("t").status().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(catalogue_.FindByName("t").status().code(), ErrorCode::kNotFound) << "not there before its commit";
  catalogue_.CancelReservation("t");
  const TableId second = catalogue_.ReserveId("t").value();
  EXPECT_EQ(second, first) << "it was never logged: a gap would have to be remembered for ever";
  catalogue_.AddCreated(second, "t", Position{Lsn{77}, 1});
  EXPECT_EQ(catalogue_.FindByName("t").value()->created_at(), (Position{Lsn{77}, 1}));
  EXPECT_EQ(catalogue_.ReserveId("").status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(catalogue_.ReserveId(std::string(256, 'n')).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(catalogue_.ReserveId(std::string(255, 'n')).ok());
}

TEST_F(CatalogueTest, ClosedTablesAreNotFoundAndOneCloses) {
  ASSERT_TRUE(catalogue_.LoadFromDc({Info(1, "t")}).ok());
  TableState* const table = catalogue_.Find(TableId{1});
  EXPECT_TRUE(table->TryClose());
  EXPECT_FALSE(table->TryClose());
  EXPECT_EQ(catalogue_.Find(TableId{1}), nullptr);
  EXPECT_EQ(catalogue_.FindByName("t").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(catalogue_.ReserveId("t").status().code(), ErrorCode::kAlreadyExists) << "the drop may fail";
  {
    ReclamationDomain::Guard guard(domain_);
    table->Reopen(domain_);
  }
  EXPECT_EQ(catalogue_.Find(TableId{1}), table);
  EXPECT_TRUE(table->TryClose());
  const auto owned = std::shared_ptr<TableState>(std::shared_ptr<TableState>(), table);
  catalogue_.MarkDropped(owned, Position{});
  const TableId fresh = catalogue_.ReserveId("t").value();
  catalogue_.AddCreated(fresh, "t", Position{});
  catalogue_.MarkDropped(owned, Position{});  // repeated: the name belongs to another table by now
  EXPECT_EQ(catalogue_.FindByName("t").value()->id(), fresh);
}

TEST_F(CatalogueTest, IdsRunOut) {
  ASSERT_TRUE(catalogue_.LoadFromDc({Info(UINT32_MAX - 1, "last but one")}).ok());
  EXPECT_EQ(catalogue_.ReserveId("t").value(), TableId{UINT32_MAX});
  EXPECT_EQ(catalogue_.ReserveId("u").status().code(), ErrorCode::kWrongState) << "no retry helps";
}

TEST_F(CatalogueTest, TablesAreLimited) {
  Catalogue few(RealRuntime(), domain_, 2);
  ASSERT_TRUE(few.LoadFromDc({Info(70'000, "a")}).ok());
  ASSERT_TRUE(few.ReserveId("b").ok());
  const Status refused = few.ReserveId("c").status();
  EXPECT_EQ(refused, ErrorCode::kWrongState) << "asking again cannot help";
  EXPECT_NE(refused.message().find("--max_tables"), std::string::npos) << refused.ToString();
  few.CancelReservation("b");
  EXPECT_TRUE(few.ReserveId("c").ok());
}

// Every id in the index is found, and no other, whatever the arrangement of ids and gaps.
TEST_F(CatalogueTest, TheIndexFindsExactlyWhatIsInIt) {
  Random random(3);
  TableIndex index;
  std::vector<TableIndex::Replaced> replaced;
  std::map<uint32_t, std::unique_ptr<TableState>> model;
  uint32_t next = UINT32_MAX - 3000;
  for (int step = 0; step < 3000; ++step) {
    // Few tables for some hundred steps, then many.
    const uint64_t wanted = step / 500 % 2 == 0 ? 5 : 200;
    if (model.size() < wanted || random.OneIn(2)) {
      auto state = std::make_unique<TableState>(TableId{++next}, "t", Position{}, nullptr);
      replaced.push_back(index.Insert(state.get()));
      model.emplace(next, std::move(state));
    }
    if (model.size() > wanted) {
      const auto gone = std::next(model.begin(), static_cast<ptrdiff_t>(random.Below(model.size())));
      index.Erase(TableId{gone->first});
      model.erase(gone);
    }
    if (step % 16 != 0) continue;
    for (uint32_t id = UINT32_MAX - 3000; id <= next; ++id) {
      const auto found = model.find(id);
      ASSERT_EQ(index.Find(TableId{id}), found == model.end() ? nullptr : found->second.get()) << id;
    }
    ASSERT_LE(index.capacity(), 2048u);
  }
}

}  // namespace
}  // namespace deut::tc
