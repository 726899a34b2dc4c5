// CPU time of a worker's code that belongs to no call: finalizers, and callbacks that top-level code has left behind.
//
// No call waits for such code or is charged for it, so it could run for ever, a little at a time. It may use a
// twentieth of a core, plus half of what calls of the worker use, because calls that compute much leave much to clean
// up. Beyond that it waits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace engine {

class Allowance final {
 public:
  bool is_used_up(uint64_t now_ns) {
    const int64_t earned = static_cast<int64_t>((now_ns - since_ns_) / kShare);
    left_ns_ = since_ns_ == 0 ? kMostNs : std::min(kMostNs, left_ns_ + earned);
    since_ns_ = now_ns;
    return left_ns_ <= 0;
  }
  // When such code may run again, if the allowance is used up.
  uint64_t Again() const {
    return since_ns_ + static_cast<uint64_t>(kEnoughNs - std::min(left_ns_, int64_t{0})) * kShare;
  }

  void Spend(uint64_t cost_ns) { left_ns_ -= static_cast<int64_t>(cost_ns); }
  // A call has used `cost_ns`.
  void Earn(uint64_t cost_ns) { left_ns_ = std::min(kMostNs, left_ns_ + static_cast<int64_t>(cost_ns / 2)); }

 private:
  static constexpr int64_t kMostNs = 50'000'000;
  static constexpr int64_t kEnoughNs = 1'000'000;
  static constexpr uint64_t kShare = 20;

  int64_t left_ns_ = kMostNs;
  uint64_t since_ns_ = 0;
};

}  // namespace engine
