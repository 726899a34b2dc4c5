// The ops of a worker that Python has not answered. Touched only inside the worker's turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>
#include "link/wire.gen.h"

namespace engine {

class PendingOps final {
 public:
  PendingOps() = default;
  PendingOps(const PendingOps&) = delete;
  PendingOps& operator=(const PendingOps&) = delete;

  // Unanswered ops hold memory that V8 does not count. An op of any size fits if it is the only one.
  bool HasRoomFor(size_t bytes) const { return bytes_ == 0 || bytes_ + bytes <= wire::kOpBytes; }
  void Add(uint32_t id, uint32_t call, size_t bytes);

  bool Has(uint32_t id) const { return ops_.contains(id); }
  // The serial of the call that started the op, which must be pending.
  uint32_t CallOf(uint32_t id) const { return ops_.at(id).call; }
  void Remove(uint32_t id);
  // Removes all ops of one call and returns their ids.
  std::vector<uint32_t> TakeAllOf(uint32_t call);
  void Clear();

 private:
  struct Op {
    uint32_t call;
    size_t bytes;
  };
  std::unordered_map<uint32_t, Op> ops_;
  size_t bytes_ = 0;
};

}  // namespace engine
