#include "integration/bench/tpcc/tpcc.h"

#include "integration/bench/tpcc/consistency.h"
#include "integration/bench/tpcc/population.h"
#include "integration/bench/tpcc/tpcc_random.h"
#include "integration/bench/tpcc/transactions.h"

namespace deut::bench::tpcc {
namespace {

class TpccTerminal final : public Terminal {
 public:
  TpccTerminal(const Scale& scale, Transactions transactions, uint32_t number, uint64_t seed)
      : scale_(scale),
        transactions_(transactions),
        number_(number),
        home_(number % scale.warehouses + 1),
        choice_(seed) {}

  Status RunNext(Session& session) override {
    ++date_;
    // Draws from 100: 45 new orders, 43 payments, 4 of each other kind; or from 88, which has only the first two.
    const uint32_t draw = choice_.Between(1, transactions_ == Transactions::kAll ? 100 : 88);
    if (draw <= 45) return RunNewOrder(session);
    if (draw <= 88) return RunPayment(session);
    if (draw <= 92) return OrderStatus(session, ChooseCustomer(home_, District()));
    if (draw <= 96) return Delivery(session, {.warehouse = home_, .carrier = choice_.Between(1, 10), .date = date_});
    uint32_t low = 0;
    return StockLevel(
        session,
        {.warehouse = home_, .district = District(), .threshold = static_cast<int32_t>(choice_.Between(10, 20))}, &low);
  }

 private:
  uint32_t District() { return choice_.Between(1, kDistricts); }

  // Returns a warehouse other than the home one, if there is one.
  uint32_t OtherWarehouse() {
    if (scale_.warehouses == 1) return home_;
    const uint32_t other = choice_.Between(1, scale_.warehouses - 1);
    return other < home_ ? other : other + 1;
  }

  CustomerChoice ChooseCustomer(uint32_t warehouse, uint32_t district) {
    CustomerChoice customer{.warehouse = warehouse, .district = district, .last_name = {}};
    if (choice_.Percent(60)) {
      customer.last_name = choice_.LastName(scale_);
    } else {
      customer.number = choice_.Customer(scale_);
    }
    return customer;
  }

  // Clause 2.4.1.
  Status RunNewOrder(Session& session) {
    NewOrderInput input{
        .warehouse = home_, .district = District(), .customer = choice_.Customer(scale_), .date = date_, .lines = {}};
    const uint32_t lines = choice_.Between(kMinLines, kMaxLines);
    for (uint32_t i = 0; i < lines; ++i) {
      const bool remote = choice_.Percent(1);
      input.lines.push_back({.item = choice_.Item(scale_),
                             .supply_warehouse = remote ? OtherWarehouse() : home_,
                             .quantity = choice_.Between(1, 10)});
    }
    const bool rolled_back = choice_.Percent(1);
    if (rolled_back) input.lines.back().item = scale_.items + 1;
    Status status = NewOrder(session, input);
    if (rolled_back && status == ErrorCode::kConditionFailed) return Status();
    if (rolled_back && status.ok()) return DEUT_ERROR(kCorruption, "an item that there is not was sold");
    if (status.ok()) ++counted_;
    return status;
  }

  // Clause 2.5.1.
  Status RunPayment(Session& session) {
    PaymentInput input{.warehouse = home_,
                       .district = District(),
                       .customer = {},
                       .amount = choice_.Between(100, 500'000),
                       .terminal = number_ + 1,
                       .date = date_};
    const bool local = choice_.Percent(85);
    input.customer = local ? ChooseCustomer(home_, input.district) : ChooseCustomer(OtherWarehouse(), District());
    return Payment(session, input);
  }

  const Scale scale_;
  const Transactions transactions_;
  const uint32_t number_;
  const uint32_t home_;
  TpccRandom choice_;
  uint64_t date_ = 0;
};

}  // namespace

uint32_t Tpcc::parts() const { return PopulationParts(scale_); }

Status Tpcc::LoadPart(Session& session, uint32_t part) const { return Populate(session, scale_, part); }

std::unique_ptr<Terminal> Tpcc::NewTerminal(uint32_t number, uint64_t seed) const {
  return std::make_unique<TpccTerminal>(scale_, transactions_, number, seed);
}

Status Tpcc::Check(Session& session) const { return CheckConsistency(session, scale_); }

}  // namespace deut::bench::tpcc
