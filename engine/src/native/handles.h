// Opaque values by which JavaScript refers to things in C++ memory: keys, codecs. It can only pass them back.
//
// A handle is a v8::External. What it stands for is owned by this table of the realm. A handle is looked up here and
// its address is never dereferenced, so a wrong value is an error and not a crash. V8 reports when a handle is garbage;
// the rest is freed with the realm. Jobs on other threads share ownership of the keys they use. The snapshot contains
// no handle and no table, because none is created while it is made.
#pragma once

#include <v8.h>

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>

namespace engine::native {

// T has cost(): how much memory V8 should assume behind a handle, because it cannot see it.
template <typename T>
class Handles final {
 public:
  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  // Undefined if this realm has too many of them, which V8's memory limit does not count.
  v8::Local<v8::Value> Add(v8::Isolate* isolate, std::shared_ptr<T> thing) {
    const size_t cost = thing->cost();
    if (bytes_ + cost > kMaxBytes) return v8::Undefined(isolate);
    const void* address = thing.get();
    const v8::Local<v8::External> handle = v8::External::New(isolate, thing.get());
    auto entry = std::make_unique<Entry>();
    entry->owner = this;
    entry->cost = cost;
    entry->thing = std::move(thing);
    entry->handle.Reset(isolate, handle);
    entry->handle.SetWeak(entry.get(), OnGarbage, v8::WeakCallbackType::kParameter);
    entries_.emplace(address, std::move(entry));
    bytes_ += cost;
    Report(isolate);
    return handle;
  }

  // Null if the value is not a handle of this realm.
  std::shared_ptr<T> Find(v8::Local<v8::Value> value) const {
    if (!value->IsExternal()) return nullptr;
    const auto found = entries_.find(value.As<v8::External>()->Value());
    return found == entries_.end() ? nullptr : found->second->thing;
  }

  // Frees what a handle stands for before it is garbage. Another value is ignored.
  void Remove(v8::Local<v8::Value> value) {
    if (!value->IsExternal()) return;
    const auto found = entries_.find(value.As<v8::External>()->Value());
    if (found == entries_.end()) return;
    bytes_ -= found->second->cost;
    entries_.erase(found);
  }

  // The isolate must be locked.
  void Clear() {
    entries_.clear();
    bytes_ = 0;
  }

 private:
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  struct Entry {
    Handles* owner;
    size_t cost;
    std::shared_ptr<T> thing;
    v8::Global<v8::External> handle;
  };

  // Called during a garbage collection, where V8 must not be used.
  static void OnGarbage(const v8::WeakCallbackInfo<Entry>& info) {
    Entry* entry = info.GetParameter();
    Handles* owner = entry->owner;
    owner->bytes_ -= entry->cost;
    entry->handle.Reset();
    owner->entries_.erase(entry->thing.get());
  }

  // Reports the memory of the handles to V8, so that it collects more eagerly.
  void Report(v8::Isolate* isolate) {
    isolate->AdjustAmountOfExternalAllocatedMemory(static_cast<int64_t>(bytes_) - static_cast<int64_t>(reported_));
    reported_ = bytes_;
  }

  std::unordered_map<const void*, std::unique_ptr<Entry>> entries_;
  size_t bytes_ = 0;
  size_t reported_ = 0;
};

}  // namespace engine::native
