// What Python has yet to hear of calls between isolates of this engine. Each is an INNER frame, written when the call
// is posted to its callee. If the call is over before the frame is sent, its figures are put into the same frame: most
// calls cost Python one frame, which comes with the next response.
//
// The link sends announcements before all other frames. So Python knows of a call before its ops, its log lines, and
// the end of the call that made it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "link/wire.h"

namespace engine {

// A call that was posted inside the engine.
struct Announcement {
  uint32_t worker;  // the callee,
  uint32_t call;    // and the id there
  uint32_t route;
  uint32_t caller;
  uint32_t callers_call;
  uint32_t op_id;
  uint16_t op;
  wire::Event event;
  std::string_view meta;
  std::string_view head;
};

class Announcements final {
 public:
  Announcements() = default;
  Announcements(const Announcements&) = delete;
  Announcements& operator=(const Announcements&) = delete;

  void Add(const Announcement& call);

  // The call is over. False if Python has heard of it already: then it must hear of the end, too.
  struct Figures {
    uint16_t status;
    uint32_t cpu_us;
    uint16_t memory_mb;
    wire::Outcome outcome;
  };
  bool Finish(uint32_t call, const Figures& figures);

  // Moves all frames to `bytes`, which is empty.
  void TakeTo(std::string& bytes);
  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }
  // True if they should be sent without waiting for other frames.
  bool AreMany() const { return size_.load(std::memory_order_relaxed) > kManyBytes; }

 private:
  static constexpr size_t kManyBytes = 64 * 1024;
  struct Open {
    size_t at;  // where its frame begins
    uint64_t since_ns;
  };

  std::atomic<size_t> size_{0};
  std::mutex mutex_;
  wire::Writer frames_;
  std::unordered_map<uint32_t, Open> open_;  // by call id
};

}  // namespace engine
