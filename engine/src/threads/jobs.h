// Long native work (RSA keys, PBKDF2, large digests) on separate threads, so that isolates can continue.
//
// A job is made inside a worker's turn from copies of its input, runs on any thread, and becomes a JavaScript value in
// a later turn of the same worker. It holds nothing of V8, so it may outlive its worker; its result is then dropped.
#pragma once

#include <v8.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace engine {

class Worker;

// The CPU time that the jobs of one call share: those that run at the same time together get what the call has left.
// The worker's turn sets what is allowed; the threads of the pool add what they use.
struct JobFund {
  std::atomic<uint64_t> allowed_ns{0};
  std::atomic<uint64_t> used_ns{0};
  uint64_t booked_ns = 0;  // the part of it that has been charged to the call; only inside the worker's turn
};

class Job {
 public:
  virtual ~Job() = default;

  // On a thread of the pool, once.
  virtual void Run() = 0;
  // Afterwards, inside a turn of the worker: the value that resolves the promise.
  virtual v8::Local<v8::Value> Value(v8::Isolate* isolate) = 0;

  // For long loops inside Run(): true when its CPU time is used up or its worker has dropped it.
  bool MustStop() const;

  uint64_t cpu_ns() const { return cpu_ns_; }
  bool expired() const { return expired_; }

 private:
  friend class Jobs;
  friend class PendingJobs;

  std::atomic<bool> canceled_{false};
  // Adds to the fund what has been used since the last time; returns by how much the fund is exceeded.
  uint64_t Spend() const;

  mutable bool expired_ = false;
  mutable uint64_t excess_ns_ = 0;   // by how much the fund was exceeded when the job was stopped
  mutable uint64_t counted_ns_ = 0;  // what the fund knows of
  std::shared_ptr<JobFund> fund_;
  uint64_t started_ns_ = 0;  // by the thread's CPU clock
  uint64_t cpu_ns_ = 0;
  size_t bytes_ = 0;  // memory it holds
};

// The thread pool of the process: first in, first out. A worker adds only a few jobs at a time, so that all workers get
// their turn.
class Jobs final {
 public:
  Jobs() = default;
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // From any thread. When the job is done, the worker gets a mail with its `id`.
  void Push(std::weak_ptr<Worker> worker, uint32_t id, std::shared_ptr<Job> job);

 private:
  static constexpr uint32_t kThreads = 2;

  struct Entry {
    std::weak_ptr<Worker> worker;
    uint32_t id;
    std::shared_ptr<Job> job;
  };
  void RunThread();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Entry> entries_;
  uint32_t threads_ = 0;  // started when first needed; most engines need none
};

}  // namespace engine
