// ArrayBuffer memory of one isolate, counted against a limit.
//
// V8 treats a failed allocation for a small on-heap typed array as fatal, so requests of 64 bytes or less are always
// granted. Resizable buffers and WebAssembly memory do not use this allocator.
#pragma once

#include <v8.h>

#include <atomic>
#include <cstdlib>

namespace engine {

class CountingAllocator final : public v8::ArrayBuffer::Allocator {
 public:
  explicit CountingAllocator(size_t limit) : limit_(limit) {}

  void* Allocate(size_t length) override { return Take(length) ? Kept(std::calloc(1, length), length) : nullptr; }
  void* AllocateUninitialized(size_t length) override {
    return Take(length) ? Kept(std::malloc(length), length) : nullptr;
  }
  void Free(void* data, size_t length) override {
    std::free(data);
    used_.fetch_sub(length, std::memory_order_relaxed);
  }
  size_t MaxAllocationSize() const override { return limit_; }

  size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kAlwaysGranted = 64;

  bool Take(size_t length) {
    size_t before = used_.fetch_add(length, std::memory_order_relaxed);
    if (length <= kAlwaysGranted || before + length <= limit_) return true;
    used_.fetch_sub(length, std::memory_order_relaxed);
    return false;
  }
  void* Kept(void* data, size_t length) {
    if (data == nullptr) used_.fetch_sub(length, std::memory_order_relaxed);
    return data;
  }

  const size_t limit_;
  std::atomic<size_t> used_{0};
};

}  // namespace engine
