#include "tc/redo_log/log_ring.h"

#include <bit>
#include <utility>

#include "common/base/check.h"

namespace deut::tc {

LogRing::LogRing(size_t bytes, Lsn base, Runtime& runtime, WriterRole& role)
    : bytes_(bytes),
      runtime_(runtime),
      role_(role),
      words_(static_cast<uint64_t*>(std::calloc(bytes / sizeof(uint64_t), sizeof(uint64_t)))),
      tail_(base.value),
      claimed_(base.value),
      released_(base.value),
      floor_(base.value) {
  DEUT_CHECK(words_ != nullptr);
  DEUT_CHECK(std::has_single_bit(bytes) && base.value % kRecordAlignment == 0);
}

void LogRing::GiveBackClaim(uint64_t bytes) {
  const uint64_t appended = tail_.load(std::memory_order_seq_cst);
  const uint64_t before = claimed_.fetch_sub(bytes, std::memory_order_seq_cst);
  // All that is appended stays claimed: a claim is given back or used, and not both (D5).
  DEUT_CHECK(appended + bytes <= before);
}

void LogRing::Cursor::Put(const void* data, size_t bytes) {
  const char* in = static_cast<const char*>(data);
  // Kept in registers: the compiler must assume that each atomic store changes memory that is loaded through a
  // pointer.
  uint64_t* const words = ring_.words_.get();
  const uint64_t mask = ring_.bytes_ - 1;
  uint64_t lsn = lsn_;
  uint64_t pending = pending_;
  const auto put = [&](uint64_t word) {
    std::atomic_ref<uint64_t>(words[(lsn & mask) / sizeof(uint64_t)]).store(word, std::memory_order_release);
    lsn += sizeof(uint64_t);
  };
  const unsigned up = 8 * used_;
  for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), in += sizeof(uint64_t)) {
    uint64_t next;
    std::memcpy(&next, in, sizeof(next));
    if (up == 0) {
      put(next);
    } else {
      put(pending | (next << up));
      pending = next >> (64 - up);
    }
  }
  lsn_ = lsn;
  pending_ = pending;
  for (; bytes > 0; --bytes, ++in) {
    pending_ |= uint64_t{static_cast<unsigned char>(*in)} << (8 * used_);
    if (++used_ == sizeof(uint64_t)) Store();
  }
}

Lsn LogRing::AppendOwn(RecordType type, std::string body_bytes) {
  const BytesBody body{std::move(body_bytes)};
  return Append(MakeRecordWord(type, body.Bytes()), body);
}

void LogRing::WaitForSpace(uint64_t end) {
  waits_.fetch_add(1, std::memory_order_relaxed);
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint32_t seen = space_word_.load(std::memory_order_seq_cst);
    DEUT_POINT("redo_log.append.before_space_check");
    if (end <= released_.load(std::memory_order_seq_cst) + bytes_) break;
    role_.Notify();  // the consumer releases lazily; now an appender needs the space
    runtime_.Wait(space_word_, seen, kNoDeadline);
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

bool LogRing::Peek(Lsn lsn, RecordWord* word) const {
  DEUT_DCHECK(lsn.value >= released_.load(std::memory_order_relaxed));
  // A word beyond the free space still belongs to the record one ring's size lower.
  if (lsn.value >= released_.load(std::memory_order_relaxed) + bytes_) return false;
  const uint64_t encoded = Word(lsn.value).load(std::memory_order_seq_cst);
  if (encoded == 0) return false;
  DEUT_CHECK(DecodeRecordWord(lsn, encoded, word));
  return true;
}

void LogRing::CopyOut(Lsn from, size_t bytes, char* to) const {
  DEUT_DCHECK(bytes % sizeof(uint64_t) == 0);
  DEUT_DCHECK(from.value + bytes <= tail_.load(std::memory_order_seq_cst));
  for (uint64_t lsn = from.value; lsn < from.value + bytes; lsn += sizeof(uint64_t), to += sizeof(uint64_t)) {
    const uint64_t word = Word(lsn).load(std::memory_order_relaxed);
    std::memcpy(to, &word, sizeof(word));
  }
}

void LogRing::Release(Lsn to) {
  const uint64_t from = released_.load(std::memory_order_relaxed);
  if (to.value > from) {
    // Only appended words are zeroed: at any moment an appender may write beyond the tail.
    DEUT_CHECK(to.value <= tail_.load(std::memory_order_seq_cst));
    // The floor rises first: a reader that copies a zeroed word then sees the raised floor and discards its copy.
    floor_.store(to.value, std::memory_order_seq_cst);
    for (uint64_t lsn = from; lsn < to.value; lsn += sizeof(uint64_t)) Word(lsn).store(0, std::memory_order_release);
    DEUT_POINT("redo_log.release.before_store");
    released_.store(to.value, std::memory_order_seq_cst);
  }
  // Loaded after the store of released_: an appender that is not seen here has yet to load released_, and finds the space.
  if (waiters_.load(std::memory_order_seq_cst) != 0) {
    space_word_.fetch_add(1, std::memory_order_seq_cst);
    runtime_.WakeAll(space_word_);
  }
}

bool LogRing::TryCopy(Lsn from, size_t bytes, char* to) const {
  DEUT_DCHECK(from.value % sizeof(uint64_t) == 0 && bytes % sizeof(uint64_t) == 0);
  if (from.value < floor_.load(std::memory_order_seq_cst)) return false;
  for (uint64_t lsn = from.value; lsn < from.value + bytes; lsn += sizeof(uint64_t), to += sizeof(uint64_t)) {
    const uint64_t word = Word(lsn).load(std::memory_order_acquire);
    std::memcpy(to, &word, sizeof(word));
  }
  DEUT_POINT("redo_log.read.before_validate");
  return from.value >= floor_.load(std::memory_order_seq_cst);
}

}  // namespace deut::tc
