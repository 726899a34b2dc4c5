// Native work that takes long (RSA keys, PBKDF2, large digests), done on threads of its own while isolates go on.
//
// A job is made inside a worker's turn from copies of what it needs, runs on any thread, and is turned into a
// JavaScript value in a later turn of the same worker. It holds nothing of V8, so it may outlive its worker; its result
// is then dropped.
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

class Job {
 public:
  virtual ~Job() = default;

  // On a thread of the pool, once.
  virtual void Run() = 0;
  // Afterwards, inside a turn of the worker: what the promise is resolved with.
  virtual v8::Local<v8::Value> Value(v8::Isolate* isolate) = 0;

  // For long loops inside Run(): true when its CPU time is used up, or nobody waits for the result any more.
  bool MustStop() const;

  uint64_t cpu_ns() const { return cpu_ns_; }
  bool expired() const { return expired_; }

 private:
  friend class Jobs;
  friend class Worker;

  std::atomic<bool> canceled_{false};
  mutable bool expired_ = false;
  uint64_t budget_ns_ = 0;
  uint64_t started_ns_ = 0;  // of the thread's CPU clock
  uint64_t cpu_ns_ = 0;
  size_t bytes_ = 0;  // memory it holds
};

// The threads of the process. First come, first served; a worker gives only a few jobs at a time, so all get their
// turn.
class Jobs final {
 public:
  Jobs() = default;
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // From any thread. When the job is done the worker gets a mail that names it by `id`.
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
  uint32_t threads_ = 0;  // started when first needed: most engines never do
};

}  // namespace engine
