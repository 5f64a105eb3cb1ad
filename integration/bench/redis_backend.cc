// Redis, over a socket: BackendOptions::target is the path of a Unix socket, or HOST:PORT. A record is a string; a sorted set of all keys, with
// one score for all, is the order that scans need. Options and their reasons: options.md.
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
    if (steps.size() == 1 && steps[0].kind == StepKind::kScan) return Scan(steps[0], check);
    if (steps.size() == 1 && steps[0].kind == StepKind::kReadModifyWrite) return ReadModifyWrite(steps[0], check);
    if (steps.size() == 1 && steps[0].kind != StepKind::kInsert) return RunOne(steps[0], check);
    return RunAsOne(steps, check);
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

  Status RunOne(const Step& step, ReadCheck* check) {
    DEUT_RETURN_IF_ERROR(SendStep(step));
    DEUT_ASSIGN_OR_RETURN(const Reply reply, Receive());
    if (step.kind == StepKind::kRead) Show(step.key, *reply, check);
    return Status();
  }

  Status ReadModifyWrite(const Step& step, ReadCheck* check) {
    DEUT_RETURN_IF_ERROR(RunOne({.kind = StepKind::kRead, .key = step.key}, check));
    return RunOne({.kind = StepKind::kUpdate, .key = step.key, .value = step.value}, check);
  }

  // MULTI, the commands and EXEC, in one go.
  Status RunAsOne(absl::Span<const Step> steps, ReadCheck* check) {
    size_t sent = 2;
    DEUT_RETURN_IF_ERROR(Send({"MULTI"}));
    for (const Step& step : steps) {
      if (step.kind == StepKind::kScan || step.kind == StepKind::kReadModifyWrite)
        return DEUT_ERROR(kInvalidArgument, "Redis: a scan, or a read-modify-write, among other steps");
      DEUT_RETURN_IF_ERROR(SendStep(step));
      ++sent;
    }
    const bool inserts =
        std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.kind == StepKind::kInsert; });
    if (inserts) {
      words_ = {"ZADD", kIndex.data()};
      lengths_ = {4, kIndex.size()};
      for (const Step& step : steps) {
        if (step.kind != StepKind::kInsert) continue;
        words_.insert(words_.end(), {"0", step.key.data()});
        lengths_.insert(lengths_.end(), {1, step.key.size()});
      }
      DEUT_RETURN_IF_ERROR(SendWords());
      ++sent;
    }
    DEUT_RETURN_IF_ERROR(Send({"EXEC"}));
    for (size_t i = 0; i + 1 < sent; ++i) DEUT_RETURN_IF_ERROR(Receive().status());
    DEUT_ASSIGN_OR_RETURN(const Reply replies, Receive());
    if (replies->type != REDIS_REPLY_ARRAY || replies->elements + 2 != sent)
      return DEUT_ERROR(kInternal, "Redis: EXEC answers ", replies->elements, " of ", sent - 2);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == StepKind::kRead) Show(steps[i].key, *replies->element[i], check);
    }
    return Status();
  }

  // The keys, then their values.
  Status Scan(const Step& step, ReadCheck* check) {
    const std::string low = Concat("[", step.key), limit = Concat(step.limit);
    DEUT_RETURN_IF_ERROR(Send({"ZRANGEBYLEX", kIndex, low, "+", "LIMIT", "0", limit}));
    DEUT_ASSIGN_OR_RETURN(const Reply keys, Receive());
    check->BeginScan(step.key, step.limit);
    if (keys->elements != 0) {
      words_ = {"MGET"};
      lengths_ = {4};
      for (size_t i = 0; i < keys->elements; ++i) {
        words_.push_back(keys->element[i]->str);
        lengths_.push_back(keys->element[i]->len);
      }
      DEUT_RETURN_IF_ERROR(SendWords());
      DEUT_ASSIGN_OR_RETURN(const Reply values, Receive());
      if (values->elements != keys->elements) return DEUT_ERROR(kInternal, "Redis: MGET answers too little");
      for (size_t i = 0; i < keys->elements; ++i) {
        if (values->element[i]->type != REDIS_REPLY_STRING) {
          check->Missing(View(*keys->element[i]));
        } else {
          check->Record(View(*keys->element[i]), View(*values->element[i]));
        }
      }
    }
    check->EndScan();
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
    return {.name = "Redis, one at a time",
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
