// The unsent frames of a worker. Frames are sent together, in one write. Touched only inside the worker's turn.
#pragma once

#include <cstdint>

#include "link/link.h"
#include "link/wire.h"

namespace engine {

class Outbox final {
 public:
  Outbox(Link& link, uint32_t worker_id) : link_(link), worker_id_(worker_id) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  wire::Writer& frames() { return frames_; }

  void Flush() { link_.Send(frames_.bytes()); }
  // `payload` belongs to the last frame, of which only the head was written.
  void FlushWith(std::string_view payload) { link_.SendWith(frames_.bytes(), payload); }
  // Called after each mail: sends the frames if the oldest has waited long enough. `hold` restarts the wait.
  void FlushIfOld(uint64_t now_ns, bool hold);
  void Clear() { frames_.bytes().clear(); }

  // A frame about the worker itself.
  void Send(wire::Frame kind, uint8_t flags, std::string_view payload) {
    frames_.Whole(kind, flags, worker_id_, 0, payload);
  }
  void SendOp(uint32_t id, uint32_t op, uint32_t call, std::string_view meta, std::string_view body);
  // Refuses a call that never began. Python may send it to another engine.
  void Refuse(uint32_t call);
  // The last frame about a call that never began.
  void EndUnbegun(uint32_t call, wire::Outcome outcome, uint8_t flags = 0);

 private:
  static constexpr uint64_t kFlushNs = 200'000;

  Link& link_;
  const uint32_t worker_id_;
  wire::Writer frames_;
  uint64_t since_ns_ = 0;
};

}  // namespace engine
