#include "threads/jobs.h"

#include <time.h>

#include <thread>
#include <utility>

#include "base/clock.h"
#include "worker/worker.h"

namespace engine {

bool Job::MustStop() const {
  if (canceled_.load(std::memory_order_relaxed)) return true;
  if (started_ns_ == 0 || expired_) return expired_;
  excess_ns_ = Spend();
  expired_ = excess_ns_ > 0;
  return expired_;
}

uint64_t Job::Spend() const {
  const uint64_t used = Nanoseconds(CLOCK_THREAD_CPUTIME_ID) - started_ns_;
  const uint64_t more = used - counted_ns_;
  counted_ns_ = used;
  const uint64_t total = fund_->used_ns.fetch_add(more, std::memory_order_relaxed) + more;
  const uint64_t allowed = fund_->allowed_ns.load(std::memory_order_relaxed);
  return total > allowed ? total - allowed : 0;
}

void Jobs::Push(std::weak_ptr<Worker> worker, uint32_t id, std::shared_ptr<Job> job) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    entries_.push_back({std::move(worker), id, std::move(job)});
    if (threads_ < kThreads && threads_ < entries_.size()) {
      threads_++;
      std::thread([this] { RunThread(); }).detach();
    }
  }
  wake_.notify_one();
}

void Jobs::RunThread() {
  for (;;) {
    Entry entry;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return !entries_.empty(); });
      entry = std::move(entries_.front());
      entries_.pop_front();
    }
    Job& job = *entry.job;
    if (job.canceled_.load(std::memory_order_relaxed)) continue;
    job.started_ns_ = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    // Other jobs of the call may have used everything while this one waited.
    if (!job.MustStop()) job.Run();
    job.Spend();
    job.cpu_ns_ = Nanoseconds(CLOCK_THREAD_CPUTIME_ID) - job.started_ns_;
    if (std::shared_ptr<Worker> worker = entry.worker.lock()) worker->Post({Mail::Kind::kFinished, 0, entry.id, {}});
  }
}

}  // namespace engine
