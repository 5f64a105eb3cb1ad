// LogRing: the redo log's memory. A circular array of 64-bit words addressed by LSN modulo its size, written by any number of appenders,
// emptied by one consumer at a time (the log thread, or a committer that leads), read back by any number of readers.
//
// Positions (all LSNs, all only rise):  floor <= released <= consumed <= tail, and an appender writes only below released + size.
//   tail      end of what is reserved
//   claimed   end of what is spoken for: at or beyond tail by what was claimed and is not appended yet, or will be lost on the disk (log_space.h)
//   consumed  the consumer's own; all records below are taken
//   released  below it the words were zeroed; their memory is the free space up to released + size
//   floor     below it readers find nothing; raised before the words are zeroed
// States of a word in free space: 0. States of a record's first word: 0 (not appended or not finished) -> its RecordWord, once.
// Steps
//   Append  1 reserve: tail += bytes (fetch-and-add; every appender wins its own stretch, nobody loses)
//           2 wait until the stretch lies below released + size. The only wait: the ring is full behind an unfinished append or a
//             slow device
//           3 store all words of the record but the first
//           4 publish: store the first word. Nobody waits for an unfinished append except through step 2
//   Consume a nonzero first word (acquire) shows a complete record; first words follow each other by length
//   Release 1 floor = to, 2 zero the words of [released, to), 3 released = to. The space then serves LSNs one ring's size higher
//   Read    copy words, then load floor: still at or below the first => all words copied were the record's (a word that had been
//           zeroed or written again would have made the raised floor visible: all words are stored with release and loaded with acquire)
// Races: appender against appender: none after the reservation. Step 2 against Release: waiters_ += 1, load released (all sequentially
//   consistent) against released = to, load waiters_: one of them sees the other. Publish against the consumer's falling asleep:
//   log_signal.h.
// Thread-safety: as named at each method. Ownership: the memory; the runtime outlives it. No system call except in waits.
// Paper: log buffers with fetch-and-add, "High Performance Transactions in Deuteronomy", CIDR 2015, section 3.
#ifndef TC_REDO_LOG_LOG_RING_H_
#define TC_REDO_LOG_LOG_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "tc/redo_log/log_signal.h"
#include "tc/redo_log/record_codec.h"

namespace deut::tc {

class LogRing {
 public:
  // `bytes` is a power of two. Everything starts at `base`, a multiple of 8. `signal` wakes the consumer; it outlives the ring.
  LogRing(size_t bytes, Lsn base, Runtime& runtime, LogSignal& signal);
  LogRing(const LogRing&) = delete;
  LogRing& operator=(const LogRing&) = delete;

  size_t bytes() const { return bytes_; }
  Lsn tail() const { return Lsn(tail_.load(std::memory_order_seq_cst)); }

  // --- Claims (rule D5), any thread.
  uint64_t claimed() const { return claimed_.load(std::memory_order_seq_cst); }
  // Claims `bytes` if nobody has moved `claimed` from *seen; else *seen is where it is now.
  bool TryClaim(uint64_t* seen, uint64_t bytes) {
    return claimed_.compare_exchange_weak(*seen, *seen + bytes, std::memory_order_seq_cst);
  }
  void AddClaim(uint64_t bytes) { claimed_.fetch_add(bytes, std::memory_order_seq_cst); }
  void GiveBackClaim(uint64_t bytes) { claimed_.fetch_sub(bytes, std::memory_order_seq_cst); }

  // --- Appenders, any thread.
  // Appends a record with `body`, which has Bytes() and Write(sink). Returns its LSN; it ends at lsn + word.bytes.
  // `claimed`: room for it was claimed before.
  template <typename Body>
  Lsn Append(RecordWord word, const Body& body, bool claimed = false) {
    DEUT_POINT("redo_log.append.before_reserve");
    if (!claimed) AddClaim(word.bytes);
    const uint64_t lsn = tail_.fetch_add(word.bytes, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.append.reserved");
    if (lsn + word.bytes > released_.load(std::memory_order_seq_cst) + bytes_) WaitForSpace(lsn + word.bytes);
    Cursor cursor(*this, lsn + kRecordWordBytes);
    body.Write(cursor);
    cursor.Finish();
    DEUT_POINT("redo_log.append.before_publish");
    Word(lsn).store(EncodeRecordWord(Lsn(lsn), word), std::memory_order_seq_cst);
    DEUT_POINT("redo_log.append.published");
    signal_.NotifyAppended(Lsn(lsn + word.bytes));
    return Lsn(lsn);
  }

  // --- The consumer, one thread at a time.
  // The record at `lsn` if it is complete. REQUIRES: lsn is at or behind consumed, and a record boundary.
  bool Peek(Lsn lsn, RecordWord* word) const;
  // Copies words out of complete records. Lengths are multiples of 8.
  void CopyOut(Lsn from, size_t bytes, char* to) const;
  // Gives [.., to) back to appenders. REQUIRES: all of it was consumed.
  void Release(Lsn to);
  Lsn released() const { return Lsn(released_.load(std::memory_order_relaxed)); }
  bool has_waiters() const { return waiters_.load(std::memory_order_seq_cst) != 0; }

  // --- Readers, any thread.
  // Copies [from, from + bytes) if it is still there. REQUIRES: all of it was consumed once; from and bytes are multiples of 8.
  bool TryCopy(Lsn from, size_t bytes, char* to) const;

  uint32_t waiters() const { return waiters_.load(std::memory_order_relaxed); }
  uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }

 private:
  // Packs a stream of bytes into whole words of the ring.
  class Cursor {
   public:
    Cursor(LogRing& ring, uint64_t lsn) : ring_(ring), lsn_(lsn) {}
    void Put(const void* data, size_t bytes);
    // Stores the last word, padded with zeros.
    void Finish() {
      if (used_ != 0) Store();
    }

   private:
    void Store() {
      ring_.Word(lsn_).store(pending_, std::memory_order_release);
      lsn_ += sizeof(uint64_t);
      pending_ = 0;
      used_ = 0;
    }
    LogRing& ring_;
    uint64_t lsn_;
    uint64_t pending_ = 0;
    unsigned used_ = 0;  // bytes in pending_, 0 to 7
  };

  std::atomic_ref<uint64_t> Word(uint64_t lsn) const {
    return std::atomic_ref<uint64_t>(words_.get()[(lsn & (bytes_ - 1)) / sizeof(uint64_t)]);
  }
  void WaitForSpace(uint64_t end);

  const size_t bytes_;
  Runtime& runtime_;
  LogSignal& signal_;
  struct FreeMemory {
    void operator()(uint64_t* words) const { std::free(words); }
  };
  // Zeroed by the system and touched page by page, so that a ring that is never filled costs what it is used for.
  const std::unique_ptr<uint64_t, FreeMemory> words_;
  alignas(64) std::atomic<uint64_t> tail_;
  std::atomic<uint64_t> claimed_;
  alignas(64) std::atomic<uint64_t> released_;
  std::atomic<uint64_t> floor_;
  alignas(64) std::atomic<uint32_t> waiters_{0};
  std::atomic<uint32_t> space_word_{0};  // raised at each release that somebody may wait for
  std::atomic<uint64_t> waits_{0};
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_RING_H_
