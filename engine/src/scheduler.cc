#include "scheduler.h"

#include <pthread.h>

#include "worker.h"

namespace engine {
namespace {

// V8 lets JavaScript use about 1 MB of stack and wants room beyond it.
constexpr size_t kStackBytes = 4 * 1024 * 1024;

}  // namespace

Scheduler::Scheduler(uint32_t threads, Watchdog& watchdog) {
  struct Start {
    Scheduler* scheduler;
    Watchdog::Slot* slot;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  for (uint32_t i = 0; i < threads; i++) {
    auto run = [](void* data) -> void* {
      std::unique_ptr<Start> start(static_cast<Start*>(data));
      start->scheduler->RunThread(*start->slot);
      return nullptr;
    };
    pthread_t thread;
    pthread_create(&thread, &attributes, run, new Start{this, &watchdog.AddSlot()});
    pthread_detach(thread);
  }
  pthread_attr_destroy(&attributes);
}

void Scheduler::Push(std::shared_ptr<Worker> worker) {
  bool wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ready_.push_back(std::move(worker));
    wake = sleeping_ > 0;
  }
  if (wake) wake_.notify_one();
}

void Scheduler::RunThread(Watchdog::Slot& slot) {
  slot.Adopt();
  for (;;) {
    std::shared_ptr<Worker> worker;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      while (ready_.empty()) {
        sleeping_++;
        wake_.wait(lock);
        sleeping_--;
      }
      worker = std::move(ready_.front());
      ready_.pop_front();
    }
    if (worker->Turn(slot)) Push(std::move(worker));
  }
}

}  // namespace engine
