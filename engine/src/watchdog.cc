#include "watchdog.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clock.h"

namespace engine {

void Watchdog::Slot::Adopt() {
  std::lock_guard<std::mutex> lock(mutex_);
  pthread_getcpuclockid(pthread_self(), &cpu_clock_);
}

Watchdog::Watchdog(std::function<void()> also) : also_(std::move(also)) {
  std::thread([this] { Run(); }).detach();
}

Watchdog::Slot& Watchdog::AddSlot() {
  std::lock_guard<std::mutex> lock(mutex_);
  slots_.push_back(std::make_unique<Slot>(*this));
  return *slots_.back();
}

void Watchdog::Run() {
  int idle_looks = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    bool busy = false;
    for (auto& slot : slots_) busy = Look(*slot) || busy;
    if (busy) {
      lock.unlock();
      also_();
      lock.lock();
    }
    idle_looks = busy ? 0 : idle_looks + 1;
    if (idle_looks < kLooksBeforeSleep) {
      wake_.wait_for(lock, std::chrono::nanoseconds(kLookEveryNs));
      continue;
    }
    asleep_.store(true);
    wake_.wait(lock, [this] { return !asleep_.load(); });
    idle_looks = 0;
  }
}

bool Watchdog::Look(Slot& slot) {
  std::lock_guard<std::mutex> lock(slot.mutex_);
  if (slot.isolate_ == nullptr) return false;
  uint64_t now = MonotonicNs();
  if (!slot.fired_ && now - slot.entered_ns_ > slot.budget_ns_ && Cost(slot, now) > slot.budget_ns_) {
    slot.fired_ = true;
    slot.isolate_->TerminateExecution();
  }
  return true;
}

uint64_t Watchdog::Cost(const Slot& slot, uint64_t now_ns) {
  uint64_t elapsed = now_ns - slot.entered_ns_;
  if (elapsed < kShortNs) return elapsed;
  uint64_t cpu = Nanoseconds(slot.cpu_clock_) - slot.base_cpu_ns_;
  return std::min(elapsed, cpu - std::min(cpu, slot.charged_ns_));
}

void Watchdog::WakeUp() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    asleep_.store(false);
  }
  wake_.notify_one();
}

Watchdog::Charge::Charge(Slot& slot, v8::Isolate* isolate, uint64_t budget_ns) : slot_(slot) {
  {
    std::lock_guard<std::mutex> lock(slot_.mutex_);
    slot_.isolate_ = isolate;
    slot_.entered_ns_ = MonotonicNs();
    slot_.budget_ns_ = budget_ns;
    slot_.fired_ = false;
    if (slot_.entered_ns_ - slot_.base_ns_ > kBaseEveryNs) {
      slot_.base_ns_ = slot_.entered_ns_;
      slot_.base_cpu_ns_ = Nanoseconds(slot_.cpu_clock_);
      slot_.charged_ns_ = 0;
    }
  }
  if (slot_.watchdog_.asleep_.load()) slot_.watchdog_.WakeUp();
}

uint64_t Watchdog::Charge::SoFar() const { return MonotonicNs() - slot_.entered_ns_; }

uint64_t Watchdog::Charge::Stop() {
  if (stopped_) return cost_ns_;
  stopped_ = true;
  std::lock_guard<std::mutex> lock(slot_.mutex_);
  cost_ns_ = Cost(slot_, MonotonicNs());
  slot_.charged_ns_ += cost_ns_;
  fired_ = slot_.fired_;
  slot_.isolate_ = nullptr;
  return cost_ns_;
}

}  // namespace engine
