#include "threads/alarms.h"

#include <algorithm>

namespace engine {

bool Alarms::Set(const std::shared_ptr<Worker>& worker, uint64_t due_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = by_worker_.find(worker.get());
  if (found != by_worker_.end()) {
    ordered_.erase({found->second.first, worker.get()});
    by_worker_.erase(found);
  }
  if (due_ns == kNever) return false;
  by_worker_.emplace(worker.get(), std::make_pair(due_ns, std::weak_ptr<Worker>(worker)));
  ordered_.emplace(due_ns, worker.get());
  return ordered_.begin()->second == worker.get();
}

std::vector<std::shared_ptr<Worker>> Alarms::TakeDue(uint64_t now_ns) {
  std::vector<std::shared_ptr<Worker>> due;
  std::lock_guard<std::mutex> lock(mutex_);
  while (!ordered_.empty() && ordered_.begin()->first <= now_ns) {
    auto found = by_worker_.find(ordered_.begin()->second);
    if (std::shared_ptr<Worker> worker = found->second.second.lock()) due.push_back(std::move(worker));
    by_worker_.erase(found);
    ordered_.erase(ordered_.begin());
  }
  return due;
}

int Alarms::Sleep(uint64_t now_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ordered_.empty()) return -1;
  uint64_t due = ordered_.begin()->first;
  if (due <= now_ns) return 0;
  return static_cast<int>(std::min<uint64_t>((due - now_ns + 999'999) / 1'000'000, 60'000));
}

}  // namespace engine
