// What an object takes of the process that V8 does not count.
//
// V8 sets 8 GB of addresses aside for each WebAssembly memory, however small, to find accesses beyond its end. A
// process has 128 TB: sixteen thousand empty memories of one worker, and no other worker gets one. So each weighs some
// megabytes of its worker's memory limit.
#pragma once

#include <v8.h>

#include <cstddef>
#include <list>

namespace engine::native {

class Weights final {
 public:
  Weights() = default;
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  // For as long as the object lives. V8 is told, so that it collects more eagerly, but does not say it again.
  void Add(v8::Isolate* isolate, v8::Local<v8::Object> object);
  size_t bytes() const { return entries_.size() * kBytes; }
  // Before the isolate goes, and while it is locked. (The entries stay: V8 may still have one in hand.)
  void LetGo();

 private:
  static constexpr int64_t kBytes = 4 << 20;

  struct Entry {
    Weights* owner;
    std::list<Entry>::iterator place;
    v8::Global<v8::Object> object;
  };
  static void OnGarbage(const v8::WeakCallbackInfo<Entry>& info);
  static void AfterGarbage(const v8::WeakCallbackInfo<Entry>& info);

  std::list<Entry> entries_;
};

}  // namespace engine::native
