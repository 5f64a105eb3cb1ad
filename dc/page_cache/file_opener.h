// FileOpener: opens the files of images for load threads, which never block. One thread serves all of them: an open
// takes some microseconds, or as long as everything else on a disk that hangs. Internal to PageLoader.
//
// Shortages (common/io/shortage.h). An open that lacks a descriptor or kernel memory is tried again, after the other
// ones that wait, with pauses from kFirstPause to kLongestPause. A load gives up at LeafLoad::open_until, and has one
// attempt at least. So all loads that a shortage meets wait for it together, and not one after the other.
// Thread-safety: Open from any thread. Ownership: owns its thread; borrows the loads until it has returned them.
#ifndef DC_PAGE_CACHE_FILE_OPENER_H_
#define DC_PAGE_CACHE_FILE_OPENER_H_

#include <chrono>
#include <deque>
#include <memory>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/page_cache/leaf_load.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

class FileOpener {
 public:
  class Client {
   public:
    // The preparation of load->read has ended. Called on the opener's thread; must not block.
    virtual void OnOpened(LeafLoad* load) = 0;

   protected:
    ~Client() = default;
  };

  static constexpr Duration kFirstPause = std::chrono::milliseconds(1);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(16);

  FileOpener(Runtime& runtime, SegmentStore& store);
  // REQUIRES: all loads were returned.
  ~FileOpener();
  FileOpener(const FileOpener&) = delete;
  FileOpener& operator=(const FileOpener&) = delete;

  // Prepares load->read, then calls the client. Until then nobody else uses load->read and load->open_until.
  void Open(LeafLoad* load, Client* client);

 private:
  struct Entry {
    LeafLoad* load;
    Client* client;
  };

  void Run();
  // False: there was a shortage, and the load is to be tried again.
  bool Try(const Entry& entry);

  Runtime& runtime_;
  SegmentStore& store_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> entries_ DEUT_GUARDED_BY(mutex_);
  bool stop_ DEUT_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_FILE_OPENER_H_
