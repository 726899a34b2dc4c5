// What an object takes of the process that V8 does not count.
//
// V8 sets 8 GB of addresses aside for each WebAssembly memory, however small, to find accesses beyond its end. A
// process has 128 TB: sixteen thousand empty memories of one worker, and no other worker gets one. So each weighs some
// megabytes of its worker's memory limit. A compiled module holds its bytes, and machine code for what has run of them:
// 3 to 10 times as much, as measured.
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

  static constexpr size_t kMemory = size_t{4} << 20;
  static constexpr size_t OfModule(size_t bytes) { return bytes * 4 + 65'536; }

  // For as long as the object lives. V8 is told, so that it collects more eagerly, but does not say it again.
  void Add(v8::Isolate* isolate, v8::Local<v8::Object> object, size_t bytes);
  size_t bytes() const { return bytes_; }
  // Before the isolate goes, and while it is locked. (The entries stay: V8 may still have one in hand.)
  void LetGo();

 private:
  struct Entry {
    Weights* owner;
    size_t bytes;
    std::list<Entry>::iterator place;
    v8::Global<v8::Object> object;
  };
  static void OnGarbage(const v8::WeakCallbackInfo<Entry>& info);
  static void AfterGarbage(const v8::WeakCallbackInfo<Entry>& info);

  std::list<Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace engine::native
