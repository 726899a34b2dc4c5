// Promises that were rejected without a handler, and those that got one later. JavaScript fires the events for them:
// https://html.spec.whatwg.org/multipage/webappapis.html#notify-about-rejected-promises
// Touched only inside the worker's turn.
#pragma once

#include <v8.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "isolate/realm.h"

namespace engine {

class Rejections final {
 public:
  Rejections() = default;
  Rejections(const Rejections&) = delete;
  Rejections& operator=(const Rejections&) = delete;

  // V8 reports a promise that belongs to the call with this serial.
  void Add(v8::Isolate* isolate, const v8::PromiseRejectMessage& message, uint32_t call);
  bool empty() const { return rejections_.empty(); }
  // Drops the handles, so the isolate must be locked.
  void Clear() { rejections_.clear(); }

  // Fires the events and logs rejections that no listener has handled. Returns early when `is_ending`: V8 is ending the
  // worker's code.
  using Log = std::function<void(uint32_t call, const std::string& text)>;
  void Report(Realm& realm, const std::function<bool()>& is_ending, const Log& log);

 private:
  struct Rejection {
    v8::Global<v8::Promise> promise;
    uint32_t call;
    bool handled;  // after it was reported
  };
  // False when V8 is ending the code.
  static bool ReportOne(Realm& realm, const Rejection& rejection, const std::function<bool()>& is_ending,
                        const Log& log);

  std::vector<Rejection> rejections_;
};

}  // namespace engine
