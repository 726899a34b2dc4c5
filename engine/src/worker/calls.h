// The calls that run in one worker: what each has sent, waits for and used.
//
// A call has two numbers. Its id comes from Python, names it in frames, and is used again as soon as the call is over.
// Its serial comes from the worker, names it in JavaScript and in the rest of the engine, and is used only once: so
// code, timers, ops and jobs that a call leaves behind are never taken for those of a later one. An unknown serial (the
// call is over, or never existed) is ignored. Touched only inside the worker's turn.
#pragma once

#include <v8.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "isolate/errors.h"
#include "link/announcements.h"
#include "link/wire.h"
#include "worker/routes.h"

namespace engine {

// Limits the console text that is passed on, in bytes per second, which bounds the cost of a flood. Per second and not
// per call, because a WebSocket may be one call for days. Python keeps the beginning for the record of the call.
class LogRoom final {
 public:
  static constexpr size_t kBytes = 256 * 1024;

  enum class Answer { kYes, kNo, kNoMore };  // kNoMore: the first dropped line of this second

  Answer Take(size_t bytes) {
    uint64_t now = MonotonicNs();
    if (now - since_ns_ >= kPeriodNs) {
      since_ns_ = now;
      said_ = 0;
      told_ = false;
    }
    if (said_ <= kBytes) {
      said_ += bytes + wire::kLineCost;
      return Answer::kYes;
    }
    return std::exchange(told_, true) ? Answer::kNo : Answer::kNoMore;
  }

 private:
  static constexpr uint64_t kPeriodNs = 1'000'000'000;

  uint64_t since_ns_ = 0;
  size_t said_ = 0;
  bool told_ = false;
};

struct Call {
  uint32_t id = 0;
  uint64_t cpu_ns = 0;
  uint64_t granted_ns = 0;  // the part of it that came out of the head start
  wire::Outcome outcome = wire::Outcome::kOk;

  // The response: nothing, head sent, body ended.
  bool responded = false;
  bool body_open = false;
  bool is_socket = false;  // the call became a WebSocket
  bool is_kept = false;    // it has connections of an object, and stays open after its response
  bool IsLong() const { return is_socket || is_kept; }
  bool is_background = false;  // no client waits, so its limits are higher
  bool is_method = false;      // of RPC
  int64_t credit = wire::kWindow;

  // What the call waits for. Together they are its pending I/O.
  bool waits_credit = false;
  bool waits_body = false;
  uint32_t timers = 0;
  uint32_t ops = 0;
  // Timers longer than the limit. They fire if the call is still open, but it does not wait for them.
  uint32_t long_timers = 0;
  uint32_t& CountTimers(bool is_long) { return is_long ? long_timers : timers; }

  bool upload_open = false;  // Python may still send parts of the request body
  uint32_t untaken = 0;      // bytes of it that JavaScript has not read
  bool canceled = false;

  // The request body is sent as the response body, without JavaScript. The bytes that wait for credit, at most the
  // window, and whether they are the last.
  bool piped = false;
  bool piped_last = false;
  std::string piped_bytes;

  // Calls inside the engine (worker/routes.h).
  std::shared_ptr<InnerOrigin> origin;  // of a call that came from inside
  std::shared_ptr<Chain> chain;         // shared with the calls it makes; null until there is one
  uint8_t hops = 0;                     // workers in the chain before this call
  uint32_t slot = 0;                    // of its object, if it came from inside through a door
  bool is_told = false;                 // frames about it were written, so its end needs one too

  // For the message when the call is stuck.
  uint32_t timers_cleared = 0;
  uint32_t ops_made = 0;

  LogRoom log_room;
};

class Calls final {
 public:
  static constexpr size_t kMaxLogBytes = LogRoom::kBytes;

  Calls(uint32_t worker_id, wire::Writer& out) : worker_id_(worker_id), out_(out) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  Call* Find(uint32_t serial);
  const Call* Find(uint32_t serial) const;
  // The serial of the call with this id; 0 when there is none.
  uint32_t SerialOf(uint32_t id) const;
  // The serial of a new call; 0 when the id is in use, which is a bug in Python.
  uint32_t Begin(uint32_t id);
  bool IsOver(uint32_t serial) const { return serial != 0 && Find(serial) == nullptr; }
  bool empty() const { return calls_.empty(); }
  size_t size() const { return calls_.size(); }

  // The response. `body` is the whole body: null, a string or a Uint8Array. False when it is too large to send at once
  // and must be streamed. `used` is the CPU time of the entry under way and the memory of the isolate.
  struct Used {
    uint64_t unfinished_ns;
    uint16_t memory_mb;
  };
  bool Respond(v8::Isolate* isolate, uint32_t serial, uint16_t status, v8::Local<v8::String> head,
               v8::Local<v8::Value> body, Used used, bool done);
  // The same for a call from inside the engine: the response is given to the caller. `body` has its size in bytes.
  struct InnerResponse {
    uint16_t status;
    std::string head;
    std::string body;
  };
  std::optional<InnerResponse> TakeInner(v8::Isolate* isolate, uint32_t serial, uint16_t status,
                                         v8::Local<v8::String> head, v8::Local<v8::Value> body);
  // Ends or continues such a call. True if it is over, and no frame was written.
  bool RespondInner(uint32_t serial, uint16_t status, Used used, bool done, Announcements& announcements);
  // The number of open calls from inside the engine.
  size_t CountInner() const;
  void BeginStream(v8::Isolate* isolate, uint32_t serial, uint16_t status, v8::Local<v8::String> head, Used used);
  // Returns how many of `bytes` were sent: no more than the credit, and none after the client disconnected. With
  // `only_head` the caller sends them, right behind the frames that are written.
  size_t SendBody(uint32_t serial, std::string_view bytes, bool only_head = false);
  void EndBody(uint32_t serial);
  void AwaitCredit(uint32_t serial);

  // The request body.
  void AwaitBody(uint32_t serial);
  void TookBody(uint32_t serial, uint32_t bytes);
  void StopBody(uint32_t serial);

  // From now on the request body is sent as the response body; `bytes` is the part that was received before.
  void BeginPipe(uint32_t serial, std::string_view bytes, bool last);
  // Sends more bytes, or uses more credit. True when the last byte is sent.
  bool Pipe(uint32_t serial, std::string_view bytes, bool last);

  void Fail(uint32_t serial, const Failure& failure);
  // Ends the call; returns true if it still had timers, which must be dropped.
  bool Done(uint32_t serial, uint64_t unfinished_ns);

  void Log(uint32_t serial, wire::Level level, double time_ms, std::string_view text);

  // Calls that can never continue, because they have no pending I/O.
  struct Stuck {
    uint32_t serial;
    bool responded;
    bool body_open;
    std::string why;
  };
  std::vector<Stuck> FindStuck() const;

  // Drops all calls without a frame: Python has ended them.
  void Forget() {
    calls_.clear();
    serials_.clear();
  }
  // Ends every call with the same failure.
  void FailAll(const Failure& failure);

 private:
  uint32_t NextSerial();
  void Erase(std::unordered_map<uint32_t, Call>::iterator call);
  void Head(v8::Isolate* isolate, uint16_t status, const Call& call, v8::Local<v8::String> head, Used used);

  const uint32_t worker_id_;
  wire::Writer& out_;
  std::unordered_map<uint32_t, Call> calls_;        // by serial
  std::unordered_map<uint32_t, uint32_t> serials_;  // by id
  uint32_t last_serial_ = 0;
  LogRoom stray_log_room_;  // for code of no call; reset with each call
};

}  // namespace engine
