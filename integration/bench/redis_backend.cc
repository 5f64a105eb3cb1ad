// Redis, over a socket: BackendOptions::target is the path of a Unix socket, or HOST:PORT. A record is a string. A
// sorted set of all keys, all with the same score, gives the order that scans need. options.md has the options and
// their reasons.
#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/concat.h"
#include "integration/bench/backend.h"

namespace deut::bench {
namespace {

constexpr std::string_view kIndex = "index";

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

struct FreeConnection {
  void operator()(redisContext* connection) const { redisFree(connection); }
};
using Connection = std::unique_ptr<redisContext, FreeConnection>;

Result<Connection> Connect(const std::string& target) {
  const size_t colon = target.rfind(':');
  int port = 0;
  const bool by_port = colon != std::string::npos && absl::SimpleAtoi(target.substr(colon + 1), &port);
  Connection connection(by_port ? redisConnect(target.substr(0, colon).c_str(), port)
                                : redisConnectUnix(target.c_str()));
  if (connection == nullptr || connection->err != 0) {
    return DEUT_ERROR(kUnavailable, "Redis at ", target, ": ",
                      connection == nullptr ? "no memory" : connection->errstr);
  }
  return connection;
}

std::string_view View(const redisReply& reply) { return {reply.str, reply.len}; }

class RedisSession final : public Session {
 public:
  explicit RedisSession(Connection connection) : connection_(std::move(connection)) {}

  Status Run(absl::Span<const Step> steps, ReadCheck* check) override {
    check->Restart();
    Sent transaction{.steps = steps};
    DEUT_RETURN_IF_ERROR(SendFirst(&transaction));
    DEUT_RETURN_IF_ERROR(ReceiveFirst(&transaction));
    DEUT_RETURN_IF_ERROR(SendSecond(&transaction));
    return ReceiveSecond(&transaction, check);
  }

  // Sends the first messages of all transactions at once, then all second messages.
  Status RunPipelined(absl::Span<const Step> steps, size_t steps_per_transaction, ReadCheck* check) override {
    std::vector<Sent> sent;
    for (size_t first = 0; first < steps.size(); first += steps_per_transaction) {
      sent.push_back({.steps = steps.subspan(first, steps_per_transaction)});
      DEUT_RETURN_IF_ERROR(SendFirst(&sent.back()));
    }
    for (Sent& transaction : sent) DEUT_RETURN_IF_ERROR(ReceiveFirst(&transaction));
    for (Sent& transaction : sent) DEUT_RETURN_IF_ERROR(SendSecond(&transaction));
    for (Sent& transaction : sent) {
      check->Restart();
      DEUT_RETURN_IF_ERROR(ReceiveSecond(&transaction, check));
      DEUT_RETURN_IF_ERROR(check->Commit());
    }
    return Status();
  }

  Status RunInteractive(bool /*writes*/, Body /*body*/) override {
    return DEUT_ERROR(kInvalidArgument, "Redis has no transactions that go on after a read");
  }

 private:
  Status Failure(std::string_view what) const {
    return DEUT_ERROR(kUnavailable, "Redis: ", what, ": ", connection_->errstr);
  }

  Status Send(std::initializer_list<std::string_view> words) {
    words_.clear();
    lengths_.clear();
    for (const std::string_view word : words) {
      words_.push_back(word.data());
      lengths_.push_back(word.size());
    }
    return SendWords();
  }
  Status SendWords() {
    const int done =
        redisAppendCommandArgv(connection_.get(), static_cast<int>(words_.size()), words_.data(), lengths_.data());
    return done == REDIS_OK ? Status() : Failure("send");
  }
  Result<Reply> Receive() {
    void* raw = nullptr;
    if (redisGetReply(connection_.get(), &raw) != REDIS_OK) return Failure("receive");
    Reply reply(static_cast<redisReply*>(raw));
    if (reply->type == REDIS_REPLY_ERROR) return DEUT_ERROR(kInternal, "Redis: ", View(*reply));
    return reply;
  }

  Status SendStep(const Step& step) {
    if (step.kind == StepKind::kRead) return Send({"GET", step.key});
    return Send({"SET", step.key, step.value});
  }

  static void Show(std::string_view key, const redisReply& reply, ReadCheck* check) {
    if (reply.type == REDIS_REPLY_STRING) {
      check->Value(key, View(reply));
    } else {
      check->Missing(key);
    }
  }

  // A transaction in flight. One step is one command. Several steps, or an insert, which also goes into the index,
  // are MULTI, the commands and EXEC. A scan's second message reads the values of its keys; that of a
  // read-modify-write writes.
  struct Sent {
    absl::Span<const Step> steps;
    size_t commands = 0;  // in the first message
    Reply first = {};     // to the last command of the first message
    bool second = false;

    bool Is(StepKind kind) const { return steps.size() == 1 && steps[0].kind == kind; }
    bool AsOne() const { return steps.size() != 1 || steps[0].kind == StepKind::kInsert; }
  };

  Status SendFirst(Sent* transaction) {
    const Step& step = transaction->steps[0];
    transaction->commands = 1;
    if (transaction->AsOne()) return SendAsOne(transaction);
    if (step.kind == StepKind::kScan)
      return Send({"ZRANGEBYLEX", kIndex, Concat("[", step.key), "+", "LIMIT", "0", Concat(step.limit)});
    if (step.kind == StepKind::kReadModifyWrite) return Send({"GET", step.key});
    return SendStep(step);
  }

  Status SendAsOne(Sent* transaction) {
    size_t& sent = transaction->commands;
    sent = 2;
    DEUT_RETURN_IF_ERROR(Send({"MULTI"}));
    for (const Step& step : transaction->steps) {
      if (step.kind == StepKind::kScan || step.kind == StepKind::kReadModifyWrite)
        return DEUT_ERROR(kInvalidArgument, "Redis: a scan, or a read-modify-write, among other steps");
      DEUT_RETURN_IF_ERROR(SendStep(step));
      ++sent;
    }
    const bool inserts = std::any_of(transaction->steps.begin(), transaction->steps.end(),
                                     [](const Step& step) { return step.kind == StepKind::kInsert; });
    if (inserts) {
      words_ = {"ZADD", kIndex.data()};
      lengths_ = {4, kIndex.size()};
      for (const Step& step : transaction->steps) {
        if (step.kind != StepKind::kInsert) continue;
        words_.insert(words_.end(), {"0", step.key.data()});
        lengths_.insert(lengths_.end(), {1, step.key.size()});
      }
      DEUT_RETURN_IF_ERROR(SendWords());
      ++sent;
    }
    return Send({"EXEC"});
  }

  Status ReceiveFirst(Sent* transaction) {
    for (size_t i = 0; i + 1 < transaction->commands; ++i) DEUT_RETURN_IF_ERROR(Receive().status());
    DEUT_ASSIGN_OR_RETURN(transaction->first, Receive());
    const redisReply& reply = *transaction->first;
    if (transaction->AsOne() && (reply.type != REDIS_REPLY_ARRAY || reply.elements + 2 != transaction->commands))
      return DEUT_ERROR(kInternal, "Redis: EXEC answers ", reply.elements, " of ", transaction->commands - 2);
    return Status();
  }

  Status SendSecond(Sent* transaction) {
    const Step& step = transaction->steps[0];
    if (transaction->Is(StepKind::kReadModifyWrite)) {
      transaction->second = true;
      return Send({"SET", step.key, step.value});
    }
    if (!transaction->Is(StepKind::kScan) || transaction->first->elements == 0) return Status();
    transaction->second = true;
    words_ = {"MGET"};
    lengths_ = {4};
    const redisReply& keys = *transaction->first;
    for (size_t i = 0; i < keys.elements; ++i) {
      words_.push_back(keys.element[i]->str);
      lengths_.push_back(keys.element[i]->len);
    }
    return SendWords();
  }

  Status ReceiveSecond(Sent* transaction, ReadCheck* check) {
    Reply second;
    if (transaction->second) {
      DEUT_ASSIGN_OR_RETURN(second, Receive());
    }
    const redisReply& first = *transaction->first;
    const absl::Span<const Step> steps = transaction->steps;
    if (transaction->AsOne()) {
      for (size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].kind == StepKind::kRead) Show(steps[i].key, *first.element[i], check);
      }
    } else if (steps[0].kind == StepKind::kScan) {
      check->BeginScan(steps[0].key, steps[0].limit);
      if (second != nullptr) DEUT_RETURN_IF_ERROR(ShowScan(first, *second, check));
      check->EndScan();
    } else if (steps[0].kind != StepKind::kUpdate) {
      Show(steps[0].key, first, check);
    }
    return Status();
  }

  static Status ShowScan(const redisReply& keys, const redisReply& values, ReadCheck* check) {
    if (values.elements != keys.elements) return DEUT_ERROR(kInternal, "Redis: MGET answers too little");
    for (size_t i = 0; i < keys.elements; ++i) {
      if (values.element[i]->type != REDIS_REPLY_STRING) {
        check->Missing(View(*keys.element[i]));
      } else {
        check->Record(View(*keys.element[i]), View(*values.element[i]));
      }
    }
    return Status();
  }

  const Connection connection_;
  std::vector<const char*> words_;
  std::vector<size_t> lengths_;
};

class RedisBackend final : public Backend {
 public:
  RedisBackend(std::string target, Connection connection)
      : target_(std::move(target)), connection_(std::move(connection)) {}

  BackendFacts Facts() const override {
    return {.name = "Redis",
            .isolation = "serializable where all is known beforehand (MULTI); F and scans: none between their messages",
            .interactive = false,
            .buffered = "written to the system, not synced",
            .durable = "append-only file synced"};
  }

  Status SetDurable(bool durable) override {
    const Reply reply(static_cast<redisReply*>(
        redisCommand(connection_.get(), "CONFIG SET appendfsync %s", durable ? "always" : "no")));
    if (reply == nullptr || reply->type == REDIS_REPLY_ERROR)
      return DEUT_ERROR(kInternal, "Redis: CONFIG SET: ", reply == nullptr ? connection_->errstr : reply->str);
    return Status();
  }

  Result<std::unique_ptr<Session>> NewSession() override {
    DEUT_ASSIGN_OR_RETURN(Connection connection, Connect(target_));
    return std::unique_ptr<Session>(std::make_unique<RedisSession>(std::move(connection)));
  }

 private:
  const std::string target_;
  const Connection connection_;
};

}  // namespace

Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options) {
  DEUT_ASSIGN_OR_RETURN(Connection connection, Connect(options.target));
  const Reply emptied(static_cast<redisReply*>(redisCommand(connection.get(), "FLUSHALL")));
  if (emptied == nullptr || emptied->type == REDIS_REPLY_ERROR)
    return DEUT_ERROR(kInternal, "Redis: FLUSHALL: ", emptied == nullptr ? connection->errstr : emptied->str);
  return std::unique_ptr<Backend>(std::make_unique<RedisBackend>(options.target, std::move(connection)));
}

}  // namespace deut::bench
