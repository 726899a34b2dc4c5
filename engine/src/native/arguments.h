// Reading arguments and returning results, for all native functions.
#pragma once

#include <v8.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

namespace engine::native {

using Arguments = v8::FunctionCallbackInfo<v8::Value>;

void ThrowTypeError(v8::Isolate* isolate, const char* message);
void ThrowRangeError(v8::Isolate* isolate, const char* message);

// True for a string that is longer than the memory limit of its worker. V8 joins strings lazily: a long one is made
// instantly, and takes a third of a second to flatten when it is first read.
bool IsBeyondMemory(v8::Isolate* isolate, v8::Local<v8::String> string);

// Memory whose allocation may fail, for sizes that a worker chooses. Small sizes stay on the stack.
template <typename Char>
class Scratch final {
 public:
  explicit Scratch(size_t length) {
    if (length > kInline) data_ = static_cast<Char*>(std::malloc(length * sizeof(Char)));
  }
  ~Scratch() {
    if (data_ != inline_) std::free(data_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  bool ok() const { return data_ != nullptr; }
  Char* data() { return data_; }

 private:
  static constexpr size_t kInline = 1024;
  Char inline_[kInline];
  Char* data_ = inline_;
};

// A JavaScript string as UTF-8 with lone surrogates replaced: a USVString of the standards.
class Utf8 final {
 public:
  Utf8(v8::Isolate* isolate, v8::Local<v8::String> string);
  Utf8(const Utf8&) = delete;
  Utf8& operator=(const Utf8&) = delete;

  bool ok() { return scratch_.ok(); }
  std::string_view view() { return {scratch_.data(), length_}; }

 private:
  Scratch<char> scratch_;
  size_t length_ = 0;
};

// The bytes of a view, for writing. Moves the content of a small typed array off V8's heap for good.
std::span<uint8_t> WritableBytes(v8::Local<v8::ArrayBufferView> view);

// The bytes of a view, for reading. Valid while this object exists and JavaScript does not run.
class ReadableBytes final {
 public:
  explicit ReadableBytes(v8::Local<v8::ArrayBufferView> view);
  ReadableBytes(const ReadableBytes&) = delete;
  ReadableBytes& operator=(const ReadableBytes&) = delete;

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  uint8_t on_heap_[64];  // the largest size that V8 keeps on its own heap
  std::span<const uint8_t> bytes_;
};

}  // namespace engine::native
