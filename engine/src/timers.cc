#include "timers.h"

#include <algorithm>

namespace engine {

bool Timers::Set(uint32_t id, uint32_t call, uint64_t due_ns) {
  if (by_id_.size() >= kMaxTimers) return false;
  uint32_t ignored;
  Clear(id, &ignored);
  by_id_.emplace(id, Entry{due_ns, call});
  ordered_.emplace(due_ns, id);
  return true;
}

bool Timers::Clear(uint32_t id, uint32_t* call) {
  auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  *call = found->second.call;
  ordered_.erase({found->second.due_ns, id});
  by_id_.erase(found);
  return true;
}

bool Timers::TakeDue(uint64_t now_ns, uint32_t* id, uint32_t* call) {
  if (earliest() > now_ns) return false;
  *id = ordered_.begin()->second;
  return Clear(*id, call);
}

size_t Timers::ClearCall(uint32_t call) {
  std::vector<uint32_t> ids;
  for (const auto& [id, entry] : by_id_) {
    if (entry.call == call) ids.push_back(id);
  }
  uint32_t ignored;
  for (uint32_t id : ids) Clear(id, &ignored);
  return ids.size();
}

bool Alarms::Set(const std::shared_ptr<Worker>& worker, uint64_t due_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = by_worker_.find(worker.get());
  if (found != by_worker_.end()) {
    ordered_.erase({found->second.first, worker.get()});
    by_worker_.erase(found);
  }
  if (due_ns == Timers::kNever) return false;
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
