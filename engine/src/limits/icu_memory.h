// Memory that ICU, the library behind `Intl`, allocates for one isolate.
//
// V8 neither counts the 20 KB of an Intl.NumberFormat nor limits their number: 64 MB of heap could hold several
// gigabytes. ICU takes allocation functions from its host; these count what is allocated while a realm is entered.
// ICU's shared caches are charged to the isolate that used them first, which is too little to matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace engine {

class IcuMemory final {
 public:
  // For the whole process, before any worker runs. False when the binary has no ICU of a known version.
  static bool Watch();

  // `full` is called during ICU's work when more than the ceiling is in use, once for each ceiling.
  IcuMemory(size_t ceiling, std::function<void()> full) : ceiling_(ceiling), full_(std::move(full)) {}
  IcuMemory(const IcuMemory&) = delete;
  IcuMemory& operator=(const IcuMemory&) = delete;

  // While it exists, allocations of this thread are counted here.
  class Scope final {
   public:
    explicit Scope(IcuMemory& memory) : before_(current_) { current_ = &memory; }
    ~Scope() { current_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    IcuMemory* const before_;
  };

  size_t used() const { return used_ > 0 ? static_cast<size_t>(used_) : 0; }
  void set_ceiling(size_t bytes) { ceiling_ = bytes; }

 private:
  static void* Take(const void*, size_t size);
  static void* Resize(const void*, void* data, size_t size);
  static void Give(const void*, void* data);
  static void Count(size_t taken, size_t given);

  static thread_local IcuMemory* current_;

  int64_t used_ = 0;  // negative after freeing memory that another isolate allocated
  size_t ceiling_;
  const std::function<void()> full_;
};

}  // namespace engine
