// How much WebAssembly a worker may compile from bytes, which its switch allows.
//
// What of it runs much is optimised by threads of V8 at nobody's expense, for up to a second for each megabyte. New
// modules again and again would keep them busy for ever. Who compiles one and keeps it never notices this.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "clock.h"

namespace engine {

class WasmQuota final {
 public:
  static constexpr int64_t kBytes = int64_t{16} << 20;  // in a minute

  // Whether a module of this size may be compiled now. The one that uses the quota up may be of any size.
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
