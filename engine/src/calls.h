// The calls that run in one worker: what each has sent, what it still waits for, what it used.
//
// A call has two numbers. Its id is Python's, names it in frames, and is used again as soon as the call is over. Its
// serial is the worker's own, names it in JavaScript and everywhere else in here, and is used only once: code, timers,
// ops and jobs that a call has left behind are never taken for those of a later one. A serial that is unknown (the call
// is over, or never was) is ignored. Everything here happens inside the worker's turn.
#pragma once

#include <v8.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clock.h"
#include "errors.h"
#include "wire.h"

namespace engine {

// How much console text is passed on: so many bytes a second, which bounds what a flood costs us. By time and not by
// call, because a WebSocket may be one for days. Python keeps the beginning for the record of the call.
class LogRoom final {
 public:
  static constexpr size_t kBytes = 256 * 1024;

  enum class Answer { kYes, kNo, kNoMore };  // kNoMore: the first line of this second that is dropped

  Answer Take(size_t bytes) {
    uint64_t now = MonotonicNs();
    if (now - since_ns_ >= kPeriodNs) {
      since_ns_ = now;
      said_ = 0;
      told_ = false;
    }
    if (said_ <= kBytes) {
      said_ += bytes + kLineBytes;
      return Answer::kYes;
    }
    return std::exchange(told_, true) ? Answer::kNo : Answer::kNoMore;
  }

 private:
  static constexpr uint64_t kPeriodNs = 1'000'000'000;
  static constexpr size_t kLineBytes = 32;  // what a line counts beside its text, so that empty ones are bounded too

  uint64_t since_ns_ = 0;
  size_t said_ = 0;
  bool told_ = false;
};

struct Call {
  uint32_t id = 0;
  uint64_t cpu_ns = 0;
  wire::Outcome outcome = wire::Outcome::kOk;

  // The response: nothing, head sent, body ended.
  bool responded = false;
  bool body_open = false;
  bool is_socket = false;  // it became a WebSocket
  bool is_event = false;   // of a clock or a queue: nobody waits for it, so it may compute for longer
  int64_t credit = wire::kWindow;

  // What the call waits for. Together they are its pending I/O.
  bool waits_credit = false;
  bool waits_body = false;
  uint32_t timers = 0;
  uint32_t ops = 0;

  bool upload_open = false;  // Python may still send parts of the request body
  uint32_t untaken = 0;      // bytes of it that came and that JavaScript has not taken
  bool canceled = false;

  // The request body goes out as the response body and no JavaScript sees it: bytes that wait for credit, at most the
  // window, and whether they are the last.
  bool piped = false;
  bool piped_last = false;
  std::string piped_bytes;

  // For the message when nothing is left to wait for.
  uint32_t timers_cleared = 0;
  bool told_of_timer = false;  // that it was set for too long
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
  // The serial of the call that frames name so; 0 when there is none.
  uint32_t SerialOf(uint32_t id) const;
  // Its serial; 0 when the id is taken: Python made a mistake.
  uint32_t Begin(uint32_t id);
  bool empty() const { return calls_.empty(); }
  size_t size() const { return calls_.size(); }

  // The response. `body` is null, a string or a Uint8Array and the whole of it; false when it is too large to send at
  // once and must be streamed. `used` is the CPU time of the entry under way, and the memory of the isolate.
  struct Used {
    uint64_t unfinished_ns;
    uint16_t memory_mb;
  };
  bool Respond(v8::Isolate* isolate, uint32_t serial, uint16_t status, v8::Local<v8::String> head,
               v8::Local<v8::Value> body, Used used, bool done);
  void BeginStream(v8::Isolate* isolate, uint32_t serial, uint16_t status, v8::Local<v8::String> head, Used used);
  // How many bytes of `bytes` were sent: no more than the credit, and none when the client is gone.
  size_t SendBody(uint32_t serial, std::string_view bytes);
  void EndBody(uint32_t serial);
  void AwaitCredit(uint32_t serial);

  // The request body.
  void AwaitBody(uint32_t serial);
  void TookBody(uint32_t serial, uint32_t bytes);
  void StopBody(uint32_t serial);

  // From now on what comes of the request body is sent on as the response body; `bytes` is what had come before.
  void BeginPipe(uint32_t serial, std::string_view bytes, bool last);
  // Tells Python that it may do the rest itself: nothing but the end of the request body comes then.
  void Echo(uint32_t serial);
  // More of it, or more credit. True when the last byte has gone.
  bool Pipe(uint32_t serial, std::string_view bytes, bool last);

  void Fail(uint32_t serial, const Failure& failure);
  // Ends the call; returns true if it still had timers, which must be dropped.
  bool Done(uint32_t serial, uint64_t unfinished_ns);

  void Log(uint32_t serial, wire::Level level, double time_ms, std::string_view text);

  // Calls that can never go on, because nothing in this worker waits for anything.
  struct Stuck {
    uint32_t serial;
    bool responded;
    bool body_open;
    std::string why;
  };
  std::vector<Stuck> FindStuck() const;

  // They have ended elsewhere.
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
  LogRoom stray_log_room_;  // of code of no call, since the last call began
};

}  // namespace engine
