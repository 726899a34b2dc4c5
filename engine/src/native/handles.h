// What JavaScript holds of a key: an opaque value it can only give back.
//
// A handle is a v8::External. Its key lives in C++ memory that is wiped when it goes, in this table of the realm: a
// handle is looked up here and its address never followed, so a wrong value is an error and not a crash. V8 tells when
// a handle is garbage; whatever is left goes with the realm. Jobs on other threads share ownership of the keys they
// use, and neither key nor table is ever part of the snapshot, since nothing makes keys while it is made.
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

  // Undefined when this realm has too many: V8's limit does not count them, so there is one here.
  v8::Local<v8::Value> Add(v8::Isolate* isolate, std::shared_ptr<Key> key);
  // Null when the value is no handle of this realm.
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
  // Called within a garbage collection, where nothing of V8 may be used.
  static void OnGarbage(const v8::WeakCallbackInfo<Entry>& info);
  // Tells V8 what the handles hold: it collects more eagerly when it knows.
  void Report(v8::Isolate* isolate);

  std::unordered_map<const void*, std::unique_ptr<Entry>> entries_;
  size_t bytes_ = 0;
  size_t reported_ = 0;
};

}  // namespace engine::native
