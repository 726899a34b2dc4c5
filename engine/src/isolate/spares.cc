#include "isolate/spares.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "link/wire.gen.h"

namespace engine {
namespace {

constexpr std::chrono::milliseconds kPause{10};
// A surplus spare is released after this long without a miss.
constexpr std::chrono::seconds kQuiet{10};
// glibc keeps the memory of disposed isolates. After this many new ones it is told to return memory to the system.
constexpr size_t kTrimEvery = 64;

}  // namespace

Spares::Spares(const RealmFactory& factory, uint32_t count, size_t memory_bytes)
    : factory_(factory), configured_(count), memory_bytes_(memory_bytes), target_(count) {}

std::unique_ptr<Realm> Spares::Take(size_t memory_bytes) {
  if (memory_bytes == memory_bytes_) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!ready_.empty()) {
      std::unique_ptr<Realm> realm = std::move(ready_.back());
      ready_.pop_back();
      return realm;
    }
    target_ = std::min(target_ * 2, size_t{configured_} * wire::kSparesGrowth);
  }
  return std::make_unique<Realm>(factory_, memory_bytes);
}

void Spares::Replenish() { taken_.notify_one(); }

void Spares::Give(std::unique_ptr<Realm> realm) {
  std::lock_guard<std::mutex> lock(mutex_);
  ready_.push_back(std::move(realm));
}

size_t Spares::count() {
  std::lock_guard<std::mutex> lock(mutex_);
  return ready_.size();
}

void Spares::Trim() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    trim_ = true;
  }
  taken_.notify_one();
}

void Spares::ReturnMemory() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    return_memory_ = true;
  }
  taken_.notify_one();
}

void Spares::Start() {
  std::thread([this] { Fill(); }).detach();
}

// Disposes of one surplus spare, outside the lock.
void Spares::Release(std::unique_lock<std::mutex>& lock) {
  if (ready_.size() <= target_) return;
  std::unique_ptr<Realm> surplus = std::move(ready_.back());
  ready_.pop_back();
  lock.unlock();
  surplus.reset();
  malloc_trim(0);
  lock.lock();
}

void Spares::Fill() {
  setpriority(PRIO_PROCESS, 0, 19);  // 0: the calling thread; the sandbox allows no other
  size_t trimmed = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      auto wanted = [this] { return trim_ || return_memory_ || ready_.size() < target_; };
      while (target_ > configured_ && !taken_.wait_for(lock, kQuiet, wanted)) {
        target_--;
        Release(lock);
      }
      taken_.wait(lock, wanted);
      if (std::exchange(trim_, false)) {
        target_ = configured_;
        while (ready_.size() > target_) Release(lock);
        return_memory_ = true;
      }
      if (std::exchange(return_memory_, false)) {
        lock.unlock();
        malloc_trim(0);
        continue;
      }
      // The thread that took a spare is busy with it, and making another takes the same locks of the allocator. Let it
      // go ahead, unless there is no spare left for the next worker.
      while (!ready_.empty() && taken_.wait_for(lock, kPause) == std::cv_status::no_timeout) {
      }
    }
    auto realm = std::make_unique<Realm>(factory_, memory_bytes_);
    realm->WarmUp();
    Give(std::move(realm));
    if (Realm::made() - trimmed > kTrimEvery) {
      trimmed = Realm::made();
      malloc_trim(0);
    }
  }
}

}  // namespace engine
