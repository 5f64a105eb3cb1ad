#include "protocol/rpc_polling.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace deut {
namespace {

constexpr char kVariable[] = "GRPC_POLL_STRATEGY";
constexpr char kByStream[] = "poll";

constinit std::atomic<bool> polls_by_stream{false};
constinit std::atomic<uint64_t> stream_reads{0};

}  // namespace

void PollByStream() {
  (void)setenv(kVariable, kByStream, /*overwrite=*/0);
  const char* const chosen = getenv(kVariable);
  polls_by_stream.store(chosen != nullptr && std::string_view(chosen) == kByStream, std::memory_order_relaxed);
}

bool PollsByStream() { return polls_by_stream.load(std::memory_order_relaxed); }

void CountStreamRead() { stream_reads.fetch_add(1, std::memory_order_relaxed); }

uint64_t StreamReads() { return stream_reads.load(std::memory_order_relaxed); }

}  // namespace deut
