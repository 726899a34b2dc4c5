// Frames that wait until the socket to Python has room. Workers take turns: one that sends megabytes does not delay the
// short answers of the others. The frames of one worker stay in order. Long pieces are kept as they come, without a
// copy. Not thread-safe: Link guards it.
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

  bool empty() const { return turns_.empty() && first_.bytes.empty(); }

  // Adds whole frames that go before those of all workers. `sent`: as for Add().
  void AddFirst(std::string_view frames, size_t sent);

  // Adds whole frames of one worker, of which the socket has taken the first `sent` bytes. These may be more than 0
  // only while the backlog is empty. May take the memory of `frames`.
  void Add(std::string& frames, size_t sent);

  // The bytes to send next; empty if there are none. They stay the first until Sent() has counted all of them.
  std::string_view Next();
  void Sent(size_t count);

 private:
  // Bytes of one worker that are sent before the next one has its turn, or one frame if that is longer.
  static constexpr size_t kTurnBytes = 64 * 1024;

  // Whole frames. The socket has the first `sent` bytes of them.
  struct Piece {
    std::string bytes;
    size_t sent = 0;
  };

  // The bytes of a piece up to the end of the frame that is partly sent are the next ones.
  void FinishFrame(Piece& piece);

  Piece* current_ = nullptr;                                // the piece that has its turn,
  size_t end_ = 0;                                          // and where that turn ends
  Piece first_;                                             // frames that go before all queues
  std::unordered_map<uint32_t, std::deque<Piece>> queues_;  // by worker; none is empty
  std::deque<uint32_t> turns_;                              // the workers that have a queue
};

}  // namespace engine
