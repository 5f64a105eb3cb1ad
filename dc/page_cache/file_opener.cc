#include "dc/page_cache/file_opener.h"

#include <algorithm>

#include "common/base/check.h"

namespace deut::dc {

FileOpener::FileOpener(Runtime& runtime, SegmentStore& store)
    : runtime_(runtime), store_(store), mutex_(runtime), thread_(runtime.StartThread("dc-open", [this] { Run(); })) {}

FileOpener::~FileOpener() {
  {
    const MutexLock lock(mutex_);
    DEUT_CHECK(entries_.empty());
    stop_ = true;
    changed_.NotifyAll(runtime_);
  }
  thread_.reset();
}

void FileOpener::Open(LeafLoad* load, Client* client) {
  const MutexLock lock(mutex_);
  entries_.push_back({load, client});
  changed_.NotifyOne(runtime_);
}

bool FileOpener::Try(const Entry& entry) {
  ImageRead& read = *entry.load->read;
  read.PrepareAndOpen(store_);
  if (read.met_shortage() && runtime_.Now() < entry.load->open_until) return false;
  // From here on the load belongs to its thread.
  entry.client->OnOpened(entry.load);
  return true;
}

void FileOpener::Run() {
  for (Duration pause = kFirstPause;;) {
    Entry entry{};
    {
      const MutexLock lock(mutex_);
      while (entries_.empty() && !stop_) changed_.Wait(mutex_);
      if (entries_.empty()) return;
      entry = entries_.front();
      entries_.pop_front();
    }
    if (Try(entry)) {
      pause = kFirstPause;
      continue;
    }
    {
      const MutexLock lock(mutex_);
      entries_.push_back(entry);
    }
    runtime_.SleepUntil(runtime_.Now() + pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace deut::dc
