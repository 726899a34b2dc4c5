#include "threads/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "worker/worker.h"

namespace engine {
namespace {

// V8 lets JavaScript use about 1 MB of stack and wants room beyond it.
constexpr size_t kStackBytes = 4 * 1024 * 1024;

// The lane of a scheduler thread; null on other threads. A worker pushed to the own lane needs no wake-up: the thread
// runs it next.
thread_local const void* own_lane = nullptr;

}  // namespace

Scheduler::Scheduler(std::function<void()> read, std::function<void()> interrupt)
    : read_(std::move(read)), interrupt_(std::move(interrupt)) {}

void Scheduler::Start(uint32_t threads, uint32_t slow_threads, Watchdog& watchdog) {
  watchdog_ = &watchdog;
  slow_threads_ = std::max<uint32_t>(slow_threads, 1);
  for (uint32_t i = 0; i < threads; i++) StartThread(quick_);
}

void Scheduler::StartThread(Lane& lane) {
  struct Start {
    Scheduler* scheduler;
    Watchdog::Slot* slot;
    Pace pace;
  };
  auto run = [](void* data) -> void* {
    std::unique_ptr<Start> start(static_cast<Start*>(data));
    start->slot->Adopt(start->pace);
    if (start->pace == Pace::kUsual) start->scheduler->RunThread(*start->slot);
    start->scheduler->RunSlowThread(*start->slot);
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  Watchdog::Slot& slot = watchdog_->TakeSlot();
  if (pthread_create(&thread, &attributes, run, new Start{this, &slot, &lane == &slow_ ? Pace::kSlow : Pace::kUsual}) ==
      0) {
    pthread_detach(thread);
    std::lock_guard<std::mutex> lock(mutex_);
    lane.threads++;
  }
  pthread_attr_destroy(&attributes);
}

void Scheduler::Push(std::shared_ptr<Worker> worker) {
  std::unique_lock<std::mutex> lock(mutex_);
  Lane& lane = worker->IsHungry() ? slow_ : quick_;
  lane.ready.push_back(std::move(worker));
  if (own_lane == &lane) return;
  if (lane.sleeping > 0) {
    lock.unlock();
    lane.wake.notify_one();
  } else if (&lane == &slow_) {
    bool more = slow_.threads < slow_threads_;
    lock.unlock();
    if (more) StartThread(slow_);
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

void Scheduler::RunNext(Lane& lane, Watchdog::Slot& slot, std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Worker> worker = std::move(lane.ready.front());
  lane.ready.pop_front();
  lane.turns++;
  lock.unlock();
  if (worker->Turn(slot)) Push(std::move(worker));
  worker.reset();
  lock.lock();
}

// Runs until the thread becomes slow.
void Scheduler::RunThread(Watchdog::Slot& slot) {
  own_lane = &quick_;
  std::unique_lock<std::mutex> lock(mutex_);
  while (slot.pace() == Pace::kUsual) {
    if (!quick_.ready.empty()) {
      RunNext(quick_, slot, lock);
    } else if (!reading_) {
      reading_ = true;
      reads_++;
      lock.unlock();
      read_();
      lock.lock();
      reading_ = false;
    } else {
      quick_.sleeping++;
      quick_.wake.wait(lock);
      quick_.sleeping--;
    }
  }
}

// Runs until there are too many slow threads, or this one is displaced.
void Scheduler::RunSlowThread(Watchdog::Slot& slot) {
  own_lane = &slow_;
  std::unique_lock<std::mutex> lock(mutex_);
  while (slot.pace() == Pace::kSlow && slow_.threads <= slow_threads_) {
    if (slow_.ready.empty()) {
      slow_.sleeping++;
      slow_.wake.wait(lock);
      slow_.sleeping--;
      continue;
    }
    RunNext(slow_, slot, lock);
  }
  if (slot.pace() == Pace::kSlow) slow_.threads--;
  // A wake-up for a worker may have been meant for this thread.
  bool is_waited_for = slow_.sleeping > 0;
  bool must_start = MustStartSlow();
  lock.unlock();
  if (is_waited_for) slow_.wake.notify_one();
  if (must_start) StartThread(slow_);
  watchdog_->GiveBack(slot);
}

void Scheduler::StandBy() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    standby_.wait(lock, [this] { return standby_needed_; });
    standby_needed_ = false;
    // Until a scheduler thread is free to read, which can then run what it reads.
    while (!reading_ && quick_.sleeping == 0) {
      reading_ = true;
      reads_++;
      lock.unlock();
      read_();
      lock.lock();
      reading_ = false;
    }
    if (quick_.sleeping > 0) quick_.wake.notify_one();
  }
}

void Scheduler::Look(uint32_t slowed, uint32_t displaced) {
  bool more_slow;
  bool more_quick;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    quick_.threads -= slowed;
    slow_.threads += slowed;
    slow_.threads -= displaced;
    more_slow = MustStartSlow();
    more_quick = MustStartQuick();
  }
  for (uint32_t i = 0; i < slowed; i++) StartThread(quick_);
  if (more_quick) StartThread(quick_);
  if (more_slow) StartThread(slow_);
}

bool Scheduler::MustStartQuick() {
  bool read_since = std::exchange(seen_reads_, reads_) != reads_;
  bool ran_since = std::exchange(quick_.seen_turns, quick_.turns) != quick_.turns;
  bool unread = !reading_ && !read_since;
  bool unrun = !quick_.ready.empty() && !ran_since;
  if ((unread || unrun) && quick_.sleeping > 0) quick_.wake.notify_one();
  if (unread && quick_.sleeping == 0) {
    standby_needed_ = true;
    standby_.notify_one();
  }
  return unrun && quick_.sleeping == 0 && quick_.threads < kMaxThreads;
}

bool Scheduler::MustStartSlow() const {
  return !slow_.ready.empty() && slow_.sleeping == 0 && slow_.threads < slow_threads_;
}

}  // namespace engine
