// What code of a worker that belongs to no call may use: finalizers, and what top-level code has left behind.
//
// Nobody waits for it and nobody is charged for it, so it could go on for ever, a little at a time. It may use a
// twentieth of a core, and besides half of what calls of the worker use: who computes much leaves much to clean up.
// What is beyond that waits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "clock.h"

namespace engine {

class Allowance final {
 public:
  bool is_used_up(uint64_t now_ns) {
    const int64_t earned = static_cast<int64_t>((now_ns - since_ns_) / kShare);
    left_ns_ = since_ns_ == 0 ? kMostNs : std::min(kMostNs, left_ns_ + earned);
    since_ns_ = now_ns;
    return left_ns_ <= 0;
  }
  // When there will be enough again, if it is used up now.
  uint64_t Again() const {
    return since_ns_ + static_cast<uint64_t>(kEnoughNs - std::min(left_ns_, int64_t{0})) * kShare;
  }

  void Spend(uint64_t cost_ns) { left_ns_ -= static_cast<int64_t>(cost_ns); }
  // A call has used so much.
  void Earn(uint64_t cost_ns) { left_ns_ = std::min(kMostNs, left_ns_ + static_cast<int64_t>(cost_ns / 2)); }

 private:
  static constexpr int64_t kMostNs = 50'000'000;
  static constexpr int64_t kEnoughNs = 1'000'000;
  static constexpr uint64_t kShare = 20;

  int64_t left_ns_ = kMostNs;
  uint64_t since_ns_ = 0;
};

}  // namespace engine
