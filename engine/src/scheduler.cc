#include "scheduler.h"

#include <pthread.h>

#include <utility>

#include "worker.h"

namespace engine {
namespace {

// V8 lets JavaScript use about 1 MB of stack and wants room beyond it.
constexpr size_t kStackBytes = 4 * 1024 * 1024;

// On the scheduler's own threads: what they push they will come to run themselves.
thread_local bool runs_workers = false;

}  // namespace

Scheduler::Scheduler(std::function<void()> read, std::function<void()> interrupt)
    : read_(std::move(read)), interrupt_(std::move(interrupt)) {}

void Scheduler::Start(uint32_t threads, Watchdog& watchdog) {
  watchdog_ = &watchdog;
  for (uint32_t i = 0; i < threads; i++) StartThread();
}

void Scheduler::StartThread() {
  struct Start {
    Scheduler* scheduler;
    Watchdog::Slot* slot;
  };
  auto run = [](void* data) -> void* {
    std::unique_ptr<Start> start(static_cast<Start*>(data));
    start->scheduler->RunThread(*start->slot);
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, run, new Start{this, &watchdog_->AddSlot()}) == 0) {
    pthread_detach(thread);
    std::lock_guard<std::mutex> lock(mutex_);
    threads_++;
  }
  pthread_attr_destroy(&attributes);
}

void Scheduler::Push(std::shared_ptr<Worker> worker) {
  std::unique_lock<std::mutex> lock(mutex_);
  ready_.push_back(std::move(worker));
  if (runs_workers) return;
  if (sleeping_ > 0) {
    lock.unlock();
    wake_.notify_one();
  } else if (reading_) {
    lock.unlock();
    interrupt_();
  }
}

void Scheduler::InterruptReading() {
  bool reading;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    reading = reading_;
  }
  if (reading) interrupt_();
}

void Scheduler::RunThread(Watchdog::Slot& slot) {
  slot.Adopt();
  runs_workers = true;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (!ready_.empty()) {
      std::shared_ptr<Worker> worker = std::move(ready_.front());
      ready_.pop_front();
      turns_++;
      lock.unlock();
      if (worker->Turn(slot)) Push(std::move(worker));
      worker.reset();
      lock.lock();
    } else if (!reading_) {
      reading_ = true;
      reads_++;
      lock.unlock();
      read_();
      lock.lock();
      reading_ = false;
    } else {
      sleeping_++;
      wake_.wait(lock);
      sleeping_--;
    }
  }
}

void Scheduler::StandBy() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    standby_.wait(lock, [this] { return standby_needed_; });
    standby_needed_ = false;
    // Until a thread is free to read: from then on it is better at it.
    while (!reading_ && sleeping_ == 0) {
      reading_ = true;
      reads_++;
      lock.unlock();
      read_();
      lock.lock();
      reading_ = false;
    }
    if (sleeping_ > 0) wake_.notify_one();
  }
}

void Scheduler::Look() {
  bool more;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    bool read_since = std::exchange(seen_reads_, reads_) != reads_;
    bool ran_since = std::exchange(seen_turns_, turns_) != turns_;
    bool unread = !reading_ && !read_since;
    bool unrun = !ready_.empty() && !ran_since;
    more = unrun && sleeping_ == 0 && threads_ < kMaxThreads;
    if ((unread || unrun) && sleeping_ > 0) wake_.notify_one();
    if (unread && sleeping_ == 0) {
      standby_needed_ = true;
      standby_.notify_one();
    }
  }
  if (more) StartThread();
}

}  // namespace engine
