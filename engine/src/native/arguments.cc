#include "native/arguments.h"

#include "isolate/realm.h"

namespace engine::native {

namespace {

v8::Local<v8::String> Message(v8::Isolate* isolate, const char* text) {
  v8::Local<v8::String> message;
  if (v8::String::NewFromUtf8(isolate, text).ToLocal(&message)) return message;
  return v8::String::Empty(isolate);
}

// A size that is enough for the string. Exact only if an estimate would waste much memory.
size_t RoomFor(v8::Isolate* isolate, v8::Local<v8::String> string) {
  const size_t most = static_cast<size_t>(string->Length()) * 3;
  return most <= 1024 ? most : string->Utf8LengthV2(isolate);
}

}  // namespace

bool IsBeyondMemory(v8::Isolate* isolate, v8::Local<v8::String> string) {
  if (isolate->GetData(0) == nullptr) return false;  // the snapshot is being made
  return static_cast<size_t>(string->Length()) > Realm::Of(isolate).memory_bytes();
}

void ThrowTypeError(v8::Isolate* isolate, const char* message) {
  isolate->ThrowException(v8::Exception::TypeError(Message(isolate, message)));
}

void ThrowRangeError(v8::Isolate* isolate, const char* message) {
  isolate->ThrowException(v8::Exception::RangeError(Message(isolate, message)));
}

Utf8::Utf8(v8::Isolate* isolate, v8::Local<v8::String> string) : scratch_(RoomFor(isolate, string)) {
  if (!scratch_.ok()) return;
  length_ = string->WriteUtf8V2(isolate, scratch_.data(), RoomFor(isolate, string),
                                v8::String::WriteFlags::kReplaceInvalidUtf8);
}

std::span<uint8_t> WritableBytes(v8::Local<v8::ArrayBufferView> view) {
  const size_t length = view->ByteLength();
  if (length == 0) return {};
  return {static_cast<uint8_t*>(view->Buffer()->Data()) + view->ByteOffset(), length};
}

ReadableBytes::ReadableBytes(v8::Local<v8::ArrayBufferView> view) {
  const v8::MemorySpan<uint8_t> bytes = view->GetContents(v8::MemorySpan<uint8_t>(on_heap_, sizeof on_heap_));
  bytes_ = {bytes.data(), bytes.size()};
}

}  // namespace engine::native
