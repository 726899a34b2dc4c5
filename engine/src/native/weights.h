// Memory and address space of objects that V8 does not count.
//
// V8 reserves 8 GB of address space for each WebAssembly memory, however small, to catch accesses beyond its end. A
// process has 128 TB, so sixteen thousand empty memories of one worker would leave none for other workers. So each
// counts as a few megabytes of its worker's memory limit. A compiled module holds its bytes, and machine code for
// functions that have run: 3 to 10 times as much, as measured.
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

  // Counts `bytes` for as long as the object lives. Also reports them to V8, so that it collects more eagerly; V8's own
  // count does not include them.
  void Add(v8::Isolate* isolate, v8::Local<v8::Object> object, size_t bytes);
  size_t bytes() const { return bytes_; }
  // Called before the isolate is disposed of, while it is locked. (The entries stay: V8 may still refer to one.)
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
