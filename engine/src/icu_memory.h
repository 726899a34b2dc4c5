// What ICU, which is behind `Intl`, takes for one isolate.
//
// V8 counts neither an Intl.NumberFormat's 20 KB nor limits how many there are: 64 MB of heap could hold on to several
// gigabytes. ICU lets its memory come from functions of ours; they add up what is taken while a realm is entered. What
// ICU keeps for everybody is counted for whoever was first, and so little that it does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace engine {

class IcuMemory final {
 public:
  // For the whole process, before any worker runs. False when ICU is another than the one Node always had.
  static bool Watch();

  // `full` is called, in the midst of ICU's work, when more than the ceiling is in use; once for each ceiling.
  IcuMemory(size_t ceiling, std::function<void()> full) : ceiling_(ceiling), full_(std::move(full)) {}
  IcuMemory(const IcuMemory&) = delete;
  IcuMemory& operator=(const IcuMemory&) = delete;

  // While it lives, what this thread takes is counted here.
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

  int64_t used_ = 0;  // below 0 when it gave back what another one took
  size_t ceiling_;
  const std::function<void()> full_;
};

}  // namespace engine
