#include "spares.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "pages.h"

namespace engine {
namespace {

constexpr std::chrono::milliseconds kPause{10};
// glibc keeps what disposed isolates gave back; after so many new ones it is asked to return it to the system.
constexpr size_t kTrimEvery = 64;

}  // namespace

Spares::Spares(const RealmFactory& factory, uint32_t count, size_t memory_bytes)
    : factory_(factory), wanted_(count), memory_bytes_(memory_bytes) {}

std::unique_ptr<Realm> Spares::Take(size_t memory_bytes, bool* made) {
  *made = false;
  if (memory_bytes == memory_bytes_) {
    std::unique_ptr<Realm> realm;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!ready_.empty()) {
        realm = std::move(ready_.back());
        ready_.pop_back();
      }
    }
    if (realm != nullptr) return realm;
  }
  *made = true;
  Pages::Making making;
  return std::make_unique<Realm>(factory_, memory_bytes);
}

void Spares::Replenish(bool made) {
  bool complete;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    prepare_ = prepare_ || made;
    complete = ready_.size() >= wanted_;
  }
  if (made && complete) Pages::Reserve();  // else more spares are better, and come first
  taken_.notify_one();
}

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

void Spares::Start() {
  std::thread([this] { Fill(); }).detach();
}

void Spares::Fill() {
  setpriority(PRIO_PROCESS, 0, 19);  // 0: this thread, the only one the sandbox lets it name
  size_t trimmed = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      taken_.wait(lock, [this] { return trim_ || prepare_ || ready_.size() < wanted_; });
      if (std::exchange(trim_, false)) {
        lock.unlock();
        malloc_trim(0);
        continue;
      }
      if (ready_.size() >= wanted_) {
        prepare_ = false;
        lock.unlock();
        Pages::Prepare();
        continue;
      }
      // Whoever took one is busy with it now, and making another takes the same memory locks: let it go ahead, unless
      // there is none left for the next.
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
