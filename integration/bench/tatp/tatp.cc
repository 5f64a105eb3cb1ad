#include "integration/bench/tatp/tatp.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "integration/bench/bulk_writer.h"
#include "integration/bench/record_scan.h"
#include "integration/bench/tatp/schema.h"

namespace deut::bench::tatp {
namespace {

constexpr uint32_t kPart = 5000;  // subscribers of a part
constexpr uint32_t kMany = 100;   // more than a subscriber has rows of any kind

using Values = std::vector<std::optional<std::string>>;

Status Missing(std::string_view key) { return DEUT_ERROR(kCorruption, "the row ", Quoted(key), " is missing"); }

// The benchmark expects that some rows are not found: such a transaction fails, and counts as done.
Status RowNotFound() { return DEUT_ERROR(kConditionFailed, "no such row"); }

void FillDigits(Random& random, char* field, size_t size) {
  for (size_t i = 0; i < size; ++i) field[i] = static_cast<char>('0' + random.Below(10));
}

void FillLetters(Random& random, char* field, size_t size) {
  for (size_t i = 0; i < size; ++i) field[i] = static_cast<char>('A' + random.Below(26));
}

// Returns `count` of `all`, each at most once, ascending.
template <size_t kCount>
std::vector<uint32_t> Some(Random& random, const uint32_t (&all)[kCount], size_t count) {
  std::vector<uint32_t> some(all, all + kCount);
  std::shuffle(some.begin(), some.end(), random);
  some.resize(count);
  std::sort(some.begin(), some.end());
  return some;
}

constexpr uint32_t kAllKinds[kKinds] = {1, 2, 3, 4};

Status LoadFacilities(BulkWriter& writer, Random& random, uint32_t s) {
  for (const uint32_t kind : Some(random, kAllKinds, random.Between(1, kKinds))) {
    SpecialFacility facility{};
    facility.active = random.Below(100) < 85 ? 1 : 0;
    facility.error = static_cast<uint8_t>(random.Below(256));
    facility.data = static_cast<uint8_t>(random.Below(256));
    FillLetters(random, facility.text, sizeof(facility.text));
    DEUT_RETURN_IF_ERROR(writer.Put(FacilityKey(s, kind), BytesOf(facility)));
    for (const uint32_t start : Some(random, kStarts, random.Between(0, 3))) {
      CallForwarding forwarding{};
      forwarding.end_time = static_cast<uint8_t>(start + random.Between(1, 8));
      FillDigits(random, forwarding.number, sizeof(forwarding.number));
      DEUT_RETURN_IF_ERROR(writer.Put(ForwardingKey(s, kind, start), BytesOf(forwarding)));
    }
  }
  return Status();
}

Status LoadSubscriber(BulkWriter& writer, Random& random, uint32_t s) {
  Subscriber subscriber{};
  subscriber.msc_location = static_cast<uint32_t>(random.Next());
  subscriber.vlr_location = static_cast<uint32_t>(random.Next());
  for (uint8_t& bit : subscriber.bits) bit = static_cast<uint8_t>(random.Below(2));
  for (uint8_t& hex : subscriber.hexes) hex = static_cast<uint8_t>(random.Below(16));
  for (uint8_t& byte : subscriber.bytes) byte = static_cast<uint8_t>(random.Below(256));
  DEUT_RETURN_IF_ERROR(writer.Put(SubscriberKey(s), BytesOf(subscriber)));
  DEUT_RETURN_IF_ERROR(writer.Put(NumberKey(s), SubscriberKey(s)));
  for (const uint32_t kind : Some(random, kAllKinds, random.Between(1, kKinds))) {
    AccessInfo info{};
    for (uint8_t& byte : info.data) byte = static_cast<uint8_t>(random.Below(256));
    FillLetters(random, info.texts, sizeof(info.texts));
    DEUT_RETURN_IF_ERROR(writer.Put(AccessKey(s, kind), BytesOf(info)));
  }
  return LoadFacilities(writer, random, s);
}

class TatpTerminal final : public Terminal {
 public:
  TatpTerminal(uint32_t subscribers, uint64_t seed) : subscribers_(subscribers), random_(seed) {}

  Status RunNext(Session& session) override {
    const uint64_t draw = random_.Below(100);
    Status status;
    if (draw < 35) {
      status = GetSubscriber(session);
    } else if (draw < 45) {
      status = GetNewDestination(session);
    } else if (draw < 80) {
      status = GetAccess(session);
    } else if (draw < 82) {
      status = UpdateSubscriber(session);
    } else if (draw < 96) {
      status = UpdateLocation(session);
    } else if (draw < 98) {
      status = InsertForwarding(session);
    } else {
      status = DeleteForwarding(session);
    }
    if (status == ErrorCode::kConditionFailed) status = Status();
    if (status.ok()) ++counted_;
    return status;
  }

 private:
  // Draws a subscriber unevenly, as the specification requires for up to a million subscribers.
  uint32_t DrawSubscriber() {
    constexpr uint64_t kA = 65'535;
    return static_cast<uint32_t>((random_.Between(0, kA) | random_.Between(1, subscribers_)) % subscribers_ + 1);
  }
  uint32_t Kind() { return static_cast<uint32_t>(random_.Between(1, kKinds)); }
  uint32_t Start() { return kStarts[random_.Below(3)]; }

  static Status GetOne(InteractiveTransaction& transaction, const std::string& key, std::string* row) {
    Values values;
    DEUT_RETURN_IF_ERROR(transaction.Get({key}, &values));
    if (!values[0].has_value()) return RowNotFound();
    *row = *std::move(values[0]);
    return Status();
  }

  // Looks up a subscriber by its number.
  static Status FindByNumber(InteractiveTransaction& transaction, uint32_t s, std::string* subscriber_key) {
    const Status status = GetOne(transaction, NumberKey(s), subscriber_key);
    return status == ErrorCode::kConditionFailed ? Missing(NumberKey(s)) : status;
  }

  Status GetSubscriber(Session& session) {
    const std::string key = SubscriberKey(DrawSubscriber());
    return session.RunInteractive(false, [&](InteractiveTransaction& transaction) -> Status {
      std::string row;
      const Status status = GetOne(transaction, key, &row);
      if (status == ErrorCode::kConditionFailed) return Missing(key);
      DEUT_RETURN_IF_ERROR(status);
      return RowOf<Subscriber>(key, row).status();
    });
  }

  Status GetNewDestination(Session& session) {
    const uint32_t s = DrawSubscriber(), kind = Kind(), start = Start();
    const auto end = static_cast<uint32_t>(random_.Between(1, 24));
    return session.RunInteractive(false, [&](InteractiveTransaction& transaction) -> Status {
      std::string row;
      DEUT_RETURN_IF_ERROR(GetOne(transaction, FacilityKey(s, kind), &row));
      DEUT_ASSIGN_OR_RETURN(const SpecialFacility facility, RowOf<SpecialFacility>(FacilityKey(s, kind), row));
      if (facility.active == 0) return RowNotFound();
      bool found = false;
      Status verdict;
      DEUT_RETURN_IF_ERROR(transaction.Scan(ForwardingKey(s, kind, 0), ForwardingKey(s, kind, start + 1),
                                            Order::kAscending, kMany,
                                            [&](std::string_view key, std::string_view value) {
                                              const Result<CallForwarding> one = RowOf<CallForwarding>(key, value);
                                              if (!one.ok()) verdict = one.status();
                                              found = found || (one.ok() && one->end_time > end);
                                            }));
      DEUT_RETURN_IF_ERROR(verdict);
      return found ? Status() : RowNotFound();
    });
  }

  Status GetAccess(Session& session) {
    const std::string key = AccessKey(DrawSubscriber(), Kind());
    return session.RunInteractive(false, [&](InteractiveTransaction& transaction) -> Status {
      std::string row;
      DEUT_RETURN_IF_ERROR(GetOne(transaction, key, &row));
      return RowOf<AccessInfo>(key, row).status();
    });
  }

  Status UpdateSubscriber(Session& session) {
    const uint32_t s = DrawSubscriber(), kind = Kind();
    const auto bit = static_cast<uint8_t>(random_.Below(2));
    const auto data = static_cast<uint8_t>(random_.Below(256));
    return session.RunInteractive(true, [&](InteractiveTransaction& transaction) -> Status {
      const std::vector<std::string> keys = {SubscriberKey(s), FacilityKey(s, kind)};
      Values values;
      DEUT_RETURN_IF_ERROR(transaction.Get(keys, &values));
      if (!values[0].has_value()) return Missing(keys[0]);
      if (!values[1].has_value()) return RowNotFound();
      DEUT_ASSIGN_OR_RETURN(Subscriber subscriber, RowOf<Subscriber>(keys[0], *values[0]));
      DEUT_ASSIGN_OR_RETURN(SpecialFacility facility, RowOf<SpecialFacility>(keys[1], *values[1]));
      subscriber.bits[0] = bit;
      facility.data = data;
      DEUT_RETURN_IF_ERROR(transaction.Put(keys[0], BytesOf(subscriber)));
      return transaction.Put(keys[1], BytesOf(facility));
    });
  }

  Status UpdateLocation(Session& session) {
    const uint32_t s = DrawSubscriber();
    const auto location = static_cast<uint32_t>(random_.Next());
    return session.RunInteractive(true, [&](InteractiveTransaction& transaction) -> Status {
      std::string key, row;
      DEUT_RETURN_IF_ERROR(FindByNumber(transaction, s, &key));
      DEUT_RETURN_IF_ERROR(GetOne(transaction, key, &row));
      DEUT_ASSIGN_OR_RETURN(Subscriber subscriber, RowOf<Subscriber>(key, row));
      subscriber.vlr_location = location;
      return transaction.Put(key, BytesOf(subscriber));
    });
  }

  Status InsertForwarding(Session& session) {
    const uint32_t s = DrawSubscriber(), kind = Kind(), start = Start();
    CallForwarding forwarding{};
    forwarding.end_time = static_cast<uint8_t>(start + random_.Between(1, 8));
    FillDigits(random_, forwarding.number, sizeof(forwarding.number));
    return session.RunInteractive(true, [&](InteractiveTransaction& transaction) -> Status {
      std::string subscriber;
      DEUT_RETURN_IF_ERROR(FindByNumber(transaction, s, &subscriber));
      std::set<std::string, std::less<>> facilities;
      DEUT_RETURN_IF_ERROR(transaction.Scan(FacilityKey(s, 0), FacilityKey(s, 9), Order::kAscending, kMany,
                                            [&](std::string_view key, std::string_view) { facilities.emplace(key); }));
      const std::string key = ForwardingKey(s, kind, start);
      Values there;
      DEUT_RETURN_IF_ERROR(transaction.Get({key}, &there));
      if (!facilities.contains(FacilityKey(s, kind)) || there[0].has_value()) return RowNotFound();
      return transaction.Put(key, BytesOf(forwarding));
    });
  }

  Status DeleteForwarding(Session& session) {
    const uint32_t s = DrawSubscriber(), kind = Kind(), start = Start();
    return session.RunInteractive(true, [&](InteractiveTransaction& transaction) -> Status {
      std::string subscriber, row;
      DEUT_RETURN_IF_ERROR(FindByNumber(transaction, s, &subscriber));
      DEUT_RETURN_IF_ERROR(GetOne(transaction, ForwardingKey(s, kind, start), &row));
      return transaction.Remove(ForwardingKey(s, kind, start));
    });
  }

  const uint32_t subscribers_;
  Random random_;
};

// Returns the subscriber of a row: the digits behind its table's prefix.
Result<uint32_t> SubscriberOf(std::string_view key, size_t digits) {
  DEUT_ASSIGN_OR_RETURN(const uint64_t number, NumberIn(key, 2, digits));
  return static_cast<uint32_t>(number);
}

Status CheckTable(InteractiveTransaction& transaction, std::string_view table,
                  absl::FunctionRef<Status(std::string_view, std::string_view)> row) {
  // Every character behind the prefix is a digit, which is below ':'.
  return ForEachRecord(transaction, std::string(table), Concat(table, ":"), row);
}

}  // namespace

uint32_t Tatp::parts() const { return (subscribers_ + kPart - 1) / kPart; }

Status Tatp::LoadPart(Session& session, uint32_t part) const {
  Random random(Mix64(part));
  BulkWriter writer(session);
  const uint32_t end = std::min(subscribers_, (part + 1) * kPart);
  for (uint32_t s = part * kPart + 1; s <= end; ++s) DEUT_RETURN_IF_ERROR(LoadSubscriber(writer, random, s));
  return writer.Flush();
}

std::unique_ptr<Terminal> Tatp::NewTerminal(uint32_t /*number*/, uint64_t seed) const {
  return std::make_unique<TatpTerminal>(subscribers_, seed);
}

Status Tatp::Check(Session& session) const {
  return session.RunInteractive(/*writes=*/false, [&](InteractiveTransaction& transaction) -> Status {
    uint32_t found = 0, numbers = 0;
    DEUT_RETURN_IF_ERROR(CheckTable(transaction, "Ts", [&](std::string_view key, std::string_view value) -> Status {
      DEUT_ASSIGN_OR_RETURN(const uint32_t s, SubscriberOf(key, kSubscriberDigits));
      if (s != ++found) return Missing(SubscriberKey(found));
      return RowOf<Subscriber>(key, value).status();
    }));
    DEUT_RETURN_IF_ERROR(CheckTable(transaction, "Tn", [&](std::string_view key, std::string_view value) -> Status {
      DEUT_ASSIGN_OR_RETURN(const uint32_t s, SubscriberOf(key, kNumberDigits));
      if (s != ++numbers || value != SubscriberKey(s)) return Missing(NumberKey(numbers));
      return Status();
    }));
    if (found != subscribers_ || numbers != subscribers_)
      return DEUT_ERROR(kCorruption, "TATP: ", found, " subscribers, ", numbers, " numbers, and there were ",
                        subscribers_);
    std::set<std::string, std::less<>> facilities;
    DEUT_RETURN_IF_ERROR(CheckTable(transaction, "Tf", [&](std::string_view key, std::string_view value) -> Status {
      facilities.emplace(key.substr(2));
      return RowOf<SpecialFacility>(key, value).status();
    }));
    return CheckTable(transaction, "Tc", [&](std::string_view key, std::string_view value) -> Status {
      const std::string_view facility = key.substr(2, kSubscriberDigits + kKindDigits);
      if (!facilities.contains(facility)) return Missing(Concat("Tf", facility));
      return RowOf<CallForwarding>(key, value).status();
    });
  });
}

}  // namespace deut::bench::tatp
