// When a worker that has become quiet should give back the memory of its busy time.
//
// V8 collects garbage when JavaScript allocates. A worker that nobody asks any more keeps what its last calls left:
// half of its memory after a busy minute. Looked at with every PING, by the thread that reads it.
#pragma once

#include <cstdint>
#include <utility>

namespace engine {

class Rest final {
 public:
  // `spent_ns` is the CPU time of the worker so far. True once it has been quiet for some looks after real work.
  bool IsDue(uint64_t spent_ns) {
    if (std::exchange(seen_ns_, spent_ns) != spent_ns) {
      quiet_looks_ = 0;
      return false;
    }
    return spent_ns - rested_ns_ >= kWorkNs && ++quiet_looks_ >= kQuietLooks;
  }
  void Begin() { rested_ns_ = seen_ns_; }

 private:
  static constexpr uint64_t kWorkNs = 20'000'000;  // less work leaves less garbage than its collection is worth
  static constexpr int kQuietLooks = 5;            // PINGs come every second

  uint64_t seen_ns_ = 0;
  uint64_t rested_ns_ = 0;
  int quiet_looks_ = 0;
};

}  // namespace engine
