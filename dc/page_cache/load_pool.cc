#include "dc/page_cache/load_pool.h"

#include <algorithm>

#include "common/base/check.h"

namespace deut::dc {

LoadPool::LoadPool(Runtime& runtime, PageLoader& loader, int threads)
    : runtime_(runtime), loader_(loader), mutex_(runtime) {
  for (int i = 0; i < threads; ++i) threads_.push_back(runtime.StartThread("dc-load", [this] { Work(); }));
}

LoadPool::~LoadPool() {
  {
    const MutexLock lock(mutex_);
    DEUT_CHECK(queue_.empty());  // a batch lives on the stack of its caller
    stop_ = true;
    changed_.NotifyAll(runtime_);
  }
  threads_.clear();
}

void LoadPool::LoadAll(TableId table, std::span<const std::string> keys, Side side) {
  if (keys.empty()) return;
  Batch batch(table, keys, side);
  {
    const MutexLock lock(mutex_);
    queue_.push_back(&batch);
    // The caller loads pages itself, so it wakes one thread less.
    for (size_t i = 1; i < std::min(keys.size(), threads_.size() + 1); ++i) changed_.NotifyOne(runtime_);
  }
  for (;;) {
    size_t at;
    {
      const MutexLock lock(mutex_);
      if (batch.begun == keys.size()) break;
      at = NextPageLocked(&batch);
    }
    Load(&batch, at);
  }
  batch.done.Wait(runtime_, kNoDeadline);
}

size_t LoadPool::NextPageLocked(Batch* batch) {
  DEUT_DCHECK(batch->begun < batch->keys.size());
  const size_t at = batch->begun++;
  if (batch->begun == batch->keys.size()) std::erase(queue_, batch);
  return at;
}

void LoadPool::Load(Batch* batch, size_t at) {
  (void)loader_.Load(batch->table, Target(batch->keys[at], batch->side));
  const MutexLock lock(mutex_);
  // The last page that is counted ends the batch's life, so none may be counted before it was taken, or twice.
  DEUT_CHECK(batch->loaded < batch->begun);
  if (++batch->loaded == batch->keys.size()) batch->done.Signal(runtime_);
}

void LoadPool::Work() {
  for (;;) {
    Batch* batch;
    size_t at;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stop_) changed_.Wait(mutex_);
      if (queue_.empty()) return;
      batch = queue_.front();
      at = NextPageLocked(batch);
    }
    Load(batch, at);
  }
}

}  // namespace deut::dc
