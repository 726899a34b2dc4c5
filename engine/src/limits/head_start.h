// CPU time that a new isolate may use once beyond the limit of its calls: V8 compiles a function when it is first
// called, so the first calls of a large bundle pay for compiling its code.
//
// The head start of an isolate grows with its code; a small script has none. It comes out of a fund of the tenant,
// which fills slowly: new isolates, versions and workers give a tenant at most a twentieth of a core beyond its limits.
// Quotas count all of it as CPU time of the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace engine {

// The head start of one isolate. V8 compiled a generated bundle of 1 MB in 38 ms of CPU; minified code takes longer,
// and so do slower machines.
constexpr uint64_t HeadStartNs(uint64_t code_bytes) {
  constexpr uint64_t kNsPerByte = 150;  // 157 ms for 1 MB
  constexpr uint64_t kMostNs = 500'000'000;
  constexpr uint64_t kLeastBytes = 32 * 1024;  // less code compiles faster than the watchdog can measure
  return code_bytes < kLeastBytes ? 0 : std::min(code_bytes * kNsPerByte, kMostNs);
}

// The fund of one tenant in this engine. From any thread.
class HeadStartFund final {
 public:
  uint64_t available() {
    std::lock_guard<std::mutex> lock(mutex_);
    Fill();
    return left_ns_;
  }

  // Takes up to `wanted_ns` and returns how much was available.
  uint64_t Take(uint64_t wanted_ns) {
    std::lock_guard<std::mutex> lock(mutex_);
    Fill();
    const uint64_t taken = std::min(wanted_ns, left_ns_);
    left_ns_ -= taken;
    return taken;
  }

 private:
  static constexpr uint64_t kMostNs = 2'000'000'000;
  static constexpr uint64_t kShare = 20;

  void Fill() {
    const uint64_t now = MonotonicNs();
    const uint64_t earned = since_ns_ == 0 ? 0 : (now - since_ns_) / kShare;
    left_ns_ = std::min(kMostNs, left_ns_ + earned);
    since_ns_ = now;
  }

  std::mutex mutex_;
  uint64_t left_ns_ = kMostNs;
  uint64_t since_ns_ = 0;
};

}  // namespace engine
