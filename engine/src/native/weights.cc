#include "native/weights.h"

namespace engine::native {

void Weights::Add(v8::Isolate* isolate, v8::Local<v8::Object> object, size_t bytes) {
  entries_.push_front({this, bytes, {}, v8::Global<v8::Object>(isolate, object)});
  Entry& entry = entries_.front();
  entry.place = entries_.begin();
  entry.object.SetWeak(&entry, OnGarbage, v8::WeakCallbackType::kParameter);
  bytes_ += bytes;
  isolate->AdjustAmountOfExternalAllocatedMemory(static_cast<int64_t>(bytes));
}

void Weights::LetGo() {
  for (Entry& entry : entries_) entry.object.Reset();
}

// Called during a garbage collection, where V8 must not be used.
void Weights::OnGarbage(const v8::WeakCallbackInfo<Entry>& info) {
  info.GetParameter()->object.Reset();
  info.SetSecondPassCallback(AfterGarbage);
}

void Weights::AfterGarbage(const v8::WeakCallbackInfo<Entry>& info) {
  Entry* entry = info.GetParameter();
  info.GetIsolate()->AdjustAmountOfExternalAllocatedMemory(-static_cast<int64_t>(entry->bytes));
  entry->owner->bytes_ -= entry->bytes;
  entry->owner->entries_.erase(entry->place);
}

}  // namespace engine::native
