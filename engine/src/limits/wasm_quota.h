// How much WebAssembly a worker may compile from bytes, if its switch allows that.
//
// V8's threads optimize hot functions, charged to no call, for up to a second per megabyte. A stream of new modules
// would keep them busy for ever. A worker that compiles a module once and keeps it never reaches the quota.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace engine {

class WasmQuota final {
 public:
  static constexpr int64_t kBytes = int64_t{16} << 20;  // per minute

  // True if a module of this size may be compiled now. The module that exhausts the quota may have any size.
  bool Take(size_t bytes) {
    const uint64_t now = MonotonicNs();
    const int64_t earned = static_cast<int64_t>((now - since_ns_) / kNsPerByte);
    left_ = since_ns_ == 0 ? kBytes : std::min(kBytes, left_ + earned);
    since_ns_ = now;
    if (left_ <= 0) return false;
    left_ -= static_cast<int64_t>(bytes);
    return true;
  }

 private:
  static constexpr uint64_t kNsPerByte = uint64_t{60'000'000'000} / kBytes;

  int64_t left_ = kBytes;
  uint64_t since_ns_ = 0;
};

}  // namespace engine
