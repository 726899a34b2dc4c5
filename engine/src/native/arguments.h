// Reading arguments and giving results: what every table of functions needs.
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

// A string that is longer than the memory of its worker. V8 makes one in no time, out of parts, and takes a third of a
// second to put them together when it is looked at.
bool IsBeyondMemory(v8::Isolate* isolate, v8::Local<v8::String> string);

// Memory that may be refused, for sizes a worker chooses. Small sizes stay on the stack.
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

// A JavaScript string as UTF-8, lone surrogates replaced: what the standards call a USVString.
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

// The bytes under a view, to write to. Moves a small typed array's content off V8's heap, where it stays.
std::span<uint8_t> WritableBytes(v8::Local<v8::ArrayBufferView> view);

// The bytes under a view, to read. Valid while this object lives and JavaScript does not run.
class ReadableBytes final {
 public:
  explicit ReadableBytes(v8::Local<v8::ArrayBufferView> view);
  ReadableBytes(const ReadableBytes&) = delete;
  ReadableBytes& operator=(const ReadableBytes&) = delete;

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  uint8_t on_heap_[64];  // the most V8 keeps on its own heap
  std::span<const uint8_t> bytes_;
};

}  // namespace engine::native
