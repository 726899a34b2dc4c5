#include "worker/pending_ops.h"

namespace engine {

void PendingOps::Add(uint32_t id, uint32_t call, size_t bytes) {
  ops_.emplace(id, Op{call, bytes});
  bytes_ += bytes;
}

void PendingOps::Remove(uint32_t id) {
  auto found = ops_.find(id);
  if (found == ops_.end()) return;
  bytes_ -= found->second.bytes;
  ops_.erase(found);
}

std::vector<uint32_t> PendingOps::TakeAllOf(uint32_t call) {
  std::vector<uint32_t> ids;
  for (const auto& [id, op] : ops_) {
    if (op.call == call) ids.push_back(id);
  }
  for (uint32_t id : ids) Remove(id);
  return ids;
}

void PendingOps::Clear() {
  ops_.clear();
  bytes_ = 0;
}

}  // namespace engine
