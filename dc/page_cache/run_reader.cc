#include "dc/page_cache/run_reader.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace deut::dc {

Result<std::unique_ptr<RunReader>> RunReader::Create(SegmentStore& store, const RunReaderOptions& options) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue, store.NewQueue(options.runs_in_flight));
  return std::unique_ptr<RunReader>(new RunReader(store, options, std::move(queue)));
}

RunReader::RunReader(SegmentStore& store, const RunReaderOptions& options, std::unique_ptr<IoQueue> queue)
    : store_(store), options_(options), queue_(std::move(queue)) {}

void RunReader::Read(std::vector<PageAddress> parts, absl::FunctionRef<bool()> stop) {
  reads_.clear();
  bytes_read_ = 0;
  met_shortage_ = false;
  for (const RunOfParts& run : PlanRuns(&parts, options_.max_gap_bytes)) {
    auto read = std::make_unique<RunRead>();
    read->of = run;
    read->status = DEUT_ERROR(kCancelled, "the run was not read");
    reads_.push_back(std::move(read));
  }
  size_t begun = 0;
  for (;;) {
    while (begun < reads_.size() && queue_->in_flight() < options_.runs_in_flight && !met_shortage_ && !stop()) {
      Begin(reads_[begun++].get());
    }
    if (queue_->in_flight() == 0) return;
    completed_.clear();
    queue_->Reap(&completed_, kNoDeadline);
    for (const IoRequest* request : completed_) {
      auto* const read = static_cast<RunRead*>(request->context);
      End(read, store_.EndReadRun(&read->run));
    }
  }
}

void RunReader::Begin(RunRead* read) {
  Status begun = store_.BeginReadRun(read->of.first, read->of.last, &read->run);
  if (begun.ok()) {
    read->run.request().context = read;
    begun = queue_->SubmitLater(&read->run.request());  // the next Reap starts all of them
    if (!begun.ok()) read->run.Reset();
  }
  if (!begun.ok()) End(read, std::move(begun));
}

void RunReader::End(RunRead* read, Status status) {
  if (status == ErrorCode::kResourceExhausted) met_shortage_ = true;
  if (status.ok()) bytes_read_ += read->run.request().transferred;
  read->status = std::move(status);
}

// Each part lies in exactly one run, and runs are in the order of their places.
RunReader::RunRead& RunReader::ReadOf(PageAddress part) const {
  const auto behind = std::upper_bound(reads_.begin(), reads_.end(), part,
                                       [](PageAddress wanted, const auto& read) { return wanted < read->of.first; });
  DEUT_CHECK(behind != reads_.begin());
  return **std::prev(behind);
}

Result<PartView> RunReader::Part(PageAddress part, PageId page) const {
  RunRead& read = ReadOf(part);
  DEUT_RETURN_IF_ERROR(read.status);
  return read.run.Part(part, page);
}

}  // namespace deut::dc
