#include "tc/mvcc/page_out.h"

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/newest_versions.h"
#include "tc/mvcc/record_version.h"

namespace deut::tc {
namespace {

bool MayGo(const RecordVersion& version, Lsn durable) {
  return version.transaction->collected() && version.logged && !version.applied && !version.tombstone &&
         !version.paged_out && version.value_bytes >= kMinPagedOutBytes &&
         (version.transaction->commit_lsn() < durable || DEUT_OMITTED("S9.page_out_durable"));
}

// Puts `out` in the place of `version`, which is below `newer`, or is expected at the head if `newer` is null. False: it is not the head.
bool Replace(RecordEntry& entry, RecordVersion* newer, RecordVersion* version, RecordVersion* out) {
  // Linked downwards first: a reader that finds `out` must find the versions below it.
  out->older.store(version->older.load(std::memory_order_seq_cst), std::memory_order_relaxed);
  if (newer != nullptr) {
    newer->older.store(out, std::memory_order_seq_cst);
    return true;
  }
  HeadWord::Value seen = entry.word.Load();
  while (seen.head == version && !seen.dead()) {
    DEUT_POINT("page_out.before_cas");
    if (DEUT_CAS_FAILS("page_out.cas")) {
      seen = entry.word.Load();
      continue;
    }
    if (entry.word.CompareExchange(seen, seen.WithHead(out))) return true;
  }
  return false;
}

}  // namespace

PagedOut PageOut(RecordEntry& entry, Lsn durable, ReclamationDomain& domain) {
  PagedOut paged;
  RecordVersion* newer = nullptr;  // the next committed version above
  NewestOfTransaction newest;
  for (RecordVersion* version = entry.word.Load().head; version != nullptr;) {
    DEUT_POINT("collector.chain_step");
    RecordVersion* const older = version->older.load(std::memory_order_seq_cst);
    const bool committed = IsCommitted(*version);
    DEUT_DCHECK(newer == nullptr || committed);  // R4, as in CollectUnread
    RecordVersion* stays = version;
    if (committed && newest(*version) && MayGo(*version, durable)) {
      RecordVersion* const out = RecordVersion::CreatePagedOut(*version);
      if (Replace(entry, newer, version, out)) {
        DEUT_DCHECK(newer == nullptr || out->version() < newer->version());  // the replacement keeps its place
        ++paged.versions;
        paged.bytes += version->bytes() - out->bytes();
        RecordVersion::Retire(version, domain);
        stays = out;
      } else {
        RecordVersion::Destroy(out, domain);
        paged.retry_later = true;
      }
    }
    if (committed) newer = stays;
    version = older;
  }
  return paged;
}

}  // namespace deut::tc
