// Opaque values by which JavaScript refers to keys. It can only pass them back.
//
// A handle is a v8::External. Its key is in C++ memory that is wiped when it is freed, in this table of the realm. A
// handle is looked up here and its address is never dereferenced, so a wrong value is an error and not a crash. V8
// reports when a handle is garbage; the rest is freed with the realm. Jobs on other threads share ownership of the keys
// they use. The snapshot contains no key and no table, because no key is created while it is made.
#pragma once

#include <v8.h>

#include <cstddef>
#include <memory>
#include <unordered_map>

namespace engine::native {

struct Key;

class Handles final {
 public:
  Handles() = default;
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  // Undefined if this realm has too many keys, which V8's memory limit does not count.
  v8::Local<v8::Value> Add(v8::Isolate* isolate, std::shared_ptr<Key> key);
  // Null if the value is not a handle of this realm.
  std::shared_ptr<Key> Find(v8::Local<v8::Value> value) const;
  // The isolate must be locked.
  void Clear();

 private:
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  struct Entry {
    Handles* owner;
    std::shared_ptr<Key> key;
    v8::Global<v8::External> handle;
  };
  // Called during a garbage collection, where V8 must not be used.
  static void OnGarbage(const v8::WeakCallbackInfo<Entry>& info);
  // Reports the memory of the handles to V8, so that it collects more eagerly.
  void Report(v8::Isolate* isolate);

  std::unordered_map<const void*, std::unique_ptr<Entry>> entries_;
  size_t bytes_ = 0;
  size_t reported_ = 0;
};

}  // namespace engine::native
