#include "native/handles.h"

#include <utility>

#include "native/crypto.h"

namespace engine::native {

Handles::~Handles() = default;

v8::Local<v8::Value> Handles::Add(v8::Isolate* isolate, std::shared_ptr<Key> key) {
  const size_t cost = key->cost();
  if (bytes_ + cost > kMaxBytes) return v8::Undefined(isolate);
  const void* address = key.get();
  const v8::Local<v8::External> handle = v8::External::New(isolate, key.get());
  auto entry = std::make_unique<Entry>();
  entry->owner = this;
  entry->key = std::move(key);
  entry->handle.Reset(isolate, handle);
  entry->handle.SetWeak(entry.get(), OnGarbage, v8::WeakCallbackType::kParameter);
  entries_.emplace(address, std::move(entry));
  bytes_ += cost;
  Report(isolate);
  return handle;
}

std::shared_ptr<Key> Handles::Find(v8::Local<v8::Value> value) const {
  if (!value->IsExternal()) return nullptr;
  const auto found = entries_.find(value.As<v8::External>()->Value());
  return found == entries_.end() ? nullptr : found->second->key;
}

void Handles::OnGarbage(const v8::WeakCallbackInfo<Entry>& info) {
  Entry* entry = info.GetParameter();
  Handles* owner = entry->owner;
  owner->bytes_ -= entry->key->cost();
  entry->handle.Reset();
  owner->entries_.erase(entry->key.get());
}

void Handles::Report(v8::Isolate* isolate) {
  isolate->AdjustAmountOfExternalAllocatedMemory(static_cast<int64_t>(bytes_) - static_cast<int64_t>(reported_));
  reported_ = bytes_;
}

void Handles::Clear() {
  entries_.clear();
  bytes_ = 0;
}

}  // namespace engine::native
