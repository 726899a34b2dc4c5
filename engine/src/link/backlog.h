// Frames that wait until the socket to Python has room. Workers take turns: one that sends megabytes does not delay the
// short answers of the others. The frames of one worker stay in order. Not thread-safe: Link guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace engine {

class Backlog final {
 public:
  Backlog() = default;
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  bool empty() const { return current_sent_ == current_.size() && turns_.empty() && first_.empty(); }

  // Adds whole frames that go before those of all workers.
  void AddFirst(std::string_view frames, size_t sent);

  // Adds whole frames of one worker, of which the socket has taken the first `sent` bytes. These may be more than 0
  // only while the backlog is empty.
  void Add(std::string_view frames, size_t sent);

  // The bytes to send next; empty if there are none. They stay the first until Sent() has counted all of them.
  std::string_view Next();
  void Sent(size_t count) { current_sent_ += count; }

 private:
  // Bytes of one worker that are sent before the next one has its turn, or one frame if that is longer.
  static constexpr size_t kTurnBytes = 64 * 1024;

  struct Queue {
    std::string bytes;
    size_t taken = 0;
  };
  // Moves whole frames of a queue to `current_`: at least one, and no more than fit in a turn.
  void Take(Queue& queue);

  // Makes the rest of a partly sent frame the current bytes. Returns where the next frame begins.
  size_t FinishFrame(std::string_view frames, size_t sent);

  std::string current_;
  size_t current_sent_ = 0;
  std::string first_;                           // frames that go before all queues
  std::unordered_map<uint32_t, Queue> queues_;  // by worker; none is empty
  std::deque<uint32_t> turns_;                  // the workers that have a queue
};

}  // namespace engine
