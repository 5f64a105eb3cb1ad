// LogRing: the redo log's memory, a circular array of 64-bit words that is addressed by LSN modulo its size. Any
// number of appenders write it. One consumer at a time empties it: the log thread, or a committer that leads. Any
// number of readers read records back from it.
//
// Positions are LSNs and only rise: floor <= released <= consumed <= tail. An appender writes only below released +
// size.
//   tail      end of the reserved bytes
//   claimed   end of the claimed bytes. It is at or beyond tail by the bytes that were claimed and are not appended
//             yet, and by the surplus for padding and segment ends (log_space.h)
//   consumed  end of the records that the consumer has taken; kept by the consumer
//   released  the words below it were zeroed; their memory is the free space up to released + size
//   floor     readers find nothing below it; it is raised before the words are zeroed
// A word in free space is 0. A record's first word goes from 0 (not appended, or not finished) to its RecordWord,
// once.
// Steps
//   Append  1 reserve: tail += bytes. It is a fetch-and-add, so every appender gets its own bytes and none loses
//           2 wait until these bytes lie below released + size. This is the only wait: the ring is full behind an
//             unfinished append or a slow device
//           3 store all words of the record but the first
//           4 publish: store the first word. No thread waits for an unfinished append except through step 2
//   Consume a nonzero first word (acquire) shows a complete record; first words follow each other by length
//   Release 1 floor = to, 2 zero the words of [released, to), 3 released = to. The space then serves LSNs one ring's
//           size higher
//   Read    copy words, then load floor. If it is still at or below the first word, all copied words were the
//           record's. All words are stored with release and loaded with acquire, so a word that was zeroed or
//           rewritten would make the raised floor visible
// Races
//   Appenders do not race with each other after the reservation.
//   Step 2 against Release: the appender raises waiters_, then loads released. Release stores released, then loads
//   waiters_. All are sequentially consistent, so one of them sees the other.
//   Publish against the consumer's falling asleep: see writer_role.h.
// Thread-safety: as named at each method. No method makes a system call except in waits. Ownership: owns the memory;
// the runtime outlives it.
// Paper: log buffers with fetch-and-add, "High Performance Transactions in Deuteronomy", CIDR 2015, section 3.
#ifndef TC_REDO_LOG_LOG_RING_H_
#define TC_REDO_LOG_LOG_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/writer_role.h"

namespace deut::tc {

class LogRing {
 public:
  // `bytes` is a power of two. All positions start at `base`, a multiple of 8. `role` wakes the consumer and
  // outlives the ring.
  LogRing(size_t bytes, Lsn base, Runtime& runtime, WriterRole& role);
  LogRing(const LogRing&) = delete;
  LogRing& operator=(const LogRing&) = delete;

  size_t bytes() const { return bytes_; }
  Lsn tail() const { return Lsn(tail_.load(std::memory_order_seq_cst)); }

  // --- Claims (rule D5), any thread.
  uint64_t claimed() const { return claimed_.load(std::memory_order_seq_cst); }
  // Claims `bytes` if `claimed` still equals *seen. Otherwise stores the present `claimed` in *seen. May fail
  // spuriously.
  bool TryClaim(uint64_t* seen, uint64_t bytes) {
    return claimed_.compare_exchange_weak(*seen, *seen + bytes, std::memory_order_seq_cst);
  }
  void AddClaim(uint64_t bytes) { claimed_.fetch_add(bytes, std::memory_order_seq_cst); }
  // REQUIRES: the bytes were claimed, and are not appended.
  void GiveBackClaim(uint64_t bytes);

  // --- Appenders, any thread.
  // Appends a record with `body`, which has Bytes() and Write(sink). Returns its LSN; the record ends at lsn +
  // word.bytes. `claimed`: the caller has claimed its room before.
  template <typename Body>
  Lsn Append(RecordWord word, const Body& body, bool claimed = false) {
    DEUT_POINT("redo_log.append.before_reserve");
    DEUT_DCHECK(word.bytes <= bytes_);  // a longer record would wait for ever
    if (!claimed) AddClaim(word.bytes);
    const uint64_t lsn = tail_.fetch_add(word.bytes, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.append.reserved");
    if (lsn + word.bytes > released_.load(std::memory_order_seq_cst) + bytes_) WaitForSpace(lsn + word.bytes);
    Cursor cursor(*this, lsn + kRecordWordBytes);
    body.Write(cursor);
    cursor.Finish();
    DEUT_DCHECK(cursor.lsn() == lsn + word.bytes);  // nothing of the next record was written
    DEUT_POINT("redo_log.append.before_publish");
    DEUT_DCHECK(Word(lsn).load(std::memory_order_relaxed) == 0);  // or the consumer would have taken it unfinished
    Word(lsn).store(EncodeRecordWord(Lsn(lsn), word), std::memory_order_seq_cst);
    DEUT_POINT("redo_log.append.published");
    role_.NotifyAppended(Lsn(lsn + word.bytes));
    return Lsn(lsn);
  }

  // Appends one of the log's own records, which need no claim. Returns its LSN.
  Lsn AppendOwn(RecordType type, std::string body_bytes);

  // --- The consumer, one thread at a time.
  // Returns the record at `lsn` if it is complete. REQUIRES: lsn is a record boundary, at or behind consumed.
  bool Peek(Lsn lsn, RecordWord* word) const;
  // Copies words out of complete records. REQUIRES: lengths are multiples of 8.
  void CopyOut(Lsn from, size_t bytes, char* to) const;
  // Gives the bytes below `to` back to appenders. REQUIRES: all of them were consumed.
  void Release(Lsn to);
  Lsn released() const { return Lsn(released_.load(std::memory_order_relaxed)); }
  bool has_waiters() const { return waiters_.load(std::memory_order_seq_cst) != 0; }

  // --- Readers, any thread.
  // Copies [from, from + bytes) if the ring still holds it. REQUIRES: all of it was consumed; from and bytes are
  // multiples of 8.
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
    uint64_t lsn() const { return lsn_; }  // of the next word

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
  WriterRole& role_;
  struct FreeMemory {
    void operator()(uint64_t* words) const { std::free(words); }
  };
  // The system hands out zeroed pages on first touch, so a ring uses only the memory that appends have reached.
  const std::unique_ptr<uint64_t, FreeMemory> words_;
  alignas(64) std::atomic<uint64_t> tail_;
  std::atomic<uint64_t> claimed_;
  alignas(64) std::atomic<uint64_t> released_;
  std::atomic<uint64_t> floor_;
  alignas(64) std::atomic<uint32_t> waiters_{0};
  std::atomic<uint32_t> space_word_{0};  // raised at each release that an appender may wait for
  std::atomic<uint64_t> waits_{0};
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_RING_H_
