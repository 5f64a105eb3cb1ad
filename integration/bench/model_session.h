// ModelSession: a store that is a map, for the tests of applications. It runs one transaction at a time, and undoes
// it if its body fails.
// ModelBackend: many sessions on one map.
// Thread-safety: as their interfaces.
#ifndef INTEGRATION_BENCH_MODEL_SESSION_H_
#define INTEGRATION_BENCH_MODEL_SESSION_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "integration/bench/backend.h"

namespace deut::bench {

class ModelSession final : public Session {
 public:
  using Records = std::map<std::string, std::string, std::less<>>;

  Status Run(absl::Span<const Step> /*steps*/, ReadCheck* /*check*/) override {
    return DEUT_ERROR(kInvalidArgument, "a model has interactive transactions only");
  }

  ModelSession() : ModelSession(std::make_shared<Store>()) {}

  Status RunInteractive(bool writes, Body body) override {
    const std::lock_guard lock(store_->mutex);
    Transaction transaction(store_->records, writes);
    const Status status = body(transaction);
    if (!status.ok()) transaction.Undo();
    return status;
  }

  // REQUIRES: no transaction runs.
  Records& records() { return store_->records; }

 private:
  friend class ModelBackend;
  struct Store {
    std::mutex mutex;
    Records records;
  };
  explicit ModelSession(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  class Transaction final : public InteractiveTransaction {
   public:
    Transaction(Records& records, bool writes) : records_(records), writes_(writes) {}

    Status Get(absl::Span<const std::string> keys, std::vector<std::optional<std::string>>* values) override {
      values->clear();
      for (const std::string& key : keys) values->push_back(Find(key));
      return Status();
    }

    Status Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
                absl::FunctionRef<void(std::string_view, std::string_view)> record) override {
      auto first = records_.lower_bound(low), end = records_.lower_bound(high);
      for (; limit > 0 && first != end; --limit) {
        if (order == Order::kAscending) {
          record(first->first, first->second);
          ++first;
        } else {
          --end;
          record(end->first, end->second);
        }
      }
      return Status();
    }

    Status Put(std::string_view key, std::string_view value) override { return Write(key, std::string(value)); }
    Status Remove(std::string_view key) override { return Write(key, std::nullopt); }

    void Undo() {
      for (; !undo_.empty(); undo_.pop_back()) Set(undo_.back().first, undo_.back().second);
    }

   private:
    std::optional<std::string> Find(std::string_view key) const {
      const auto it = records_.find(key);
      return it == records_.end() ? std::nullopt : std::optional(it->second);
    }
    void Set(const std::string& key, const std::optional<std::string>& value) {
      if (value.has_value()) {
        records_[key] = *value;
      } else {
        records_.erase(key);
      }
    }
    Status Write(std::string_view key, const std::optional<std::string>& value) {
      if (!writes_) return DEUT_ERROR(kWrongState, "a transaction that said it only reads writes ", key);
      undo_.emplace_back(key, Find(key));
      Set(undo_.back().first, value);
      return Status();
    }

    Records& records_;
    const bool writes_;
    std::vector<std::pair<std::string, std::optional<std::string>>> undo_;
  };

  const std::shared_ptr<Store> store_;
};

class ModelBackend final : public Backend {
 public:
  BackendFacts Facts() const override {
    return {.name = "a map", .isolation = "serial", .buffered = "in memory", .durable = "never"};
  }
  Status SetDurable(bool /*durable*/) override { return Status(); }
  Result<std::unique_ptr<Session>> NewSession() override {
    return std::unique_ptr<Session>(new ModelSession(session_.store_));
  }
  ModelSession& session() { return session_; }

 private:
  ModelSession session_;
};

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_MODEL_SESSION_H_
