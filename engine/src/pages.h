// Memory for the next isolate, made ready when nobody waits for it.
//
// A quarter of the time an isolate takes is the kernel's: V8 maps its heap piece by piece, the C library grows, and
// each page is given and cleared when it is first touched. None of that depends on whose isolate it will be. So once
// one had to be made while somebody waited, the memory of the next is prepared. The pieces are mapped by V8's own
// allocator, at places as random as ever; which of their pages will be touched is learned from the first isolate.
#pragma once

#include <v8-platform.h>

#include <cstddef>
#include <mutex>
#include <vector>

namespace engine {

class Pages final {
  struct Range {
    char* begin;
    size_t bytes;
  };

 public:
  // Stands before V8's allocator, which no interface leads to once Node runs: its table of methods is changed. False if
  // this Node does not have it where it should be; V8 then gets its memory as ever. Before the sandbox and threads.
  static bool Attach();

  // While one lives, what V8 maps on this thread for a heap is taken from what was prepared. The first one learns what
  // there is to prepare.
  class Making final {
   public:
    Making();
    ~Making();
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;
    static void* operator new(size_t) = delete;

   private:
    friend class Pages;
    std::vector<char*> ready_;  // as Pages::ready_
    size_t next_ = 0;
    std::vector<Range> seen_;  // while it learns
    bool learns_ = false;
  };

  // For the thread that has made an isolate, once the answer has left: has the C library take hold of what another
  // would need of it, since it has memory for each thread.
  static void Reserve();
  // Makes ready what was reserved, and pieces of heap. For a thread that nobody waits for.
  static void Prepare();

 private:
  static void* Allocate(v8::PageAllocator* self, void* hint, size_t bytes, size_t alignment,
                        v8::PageAllocator::Permission access);
  static bool Release(v8::PageAllocator* self, void* begin, size_t bytes, size_t left);
  static void Learn(const std::vector<Range>& seen);
  static bool PreparePiece();
  static void Add(size_t index, char* piece);

  static thread_local Making* making_;
  static inline std::mutex mutex_;
  static inline v8::PageAllocator* allocator_ = nullptr;  // V8's, once it is known what to prepare
  static inline std::vector<size_t> touched_;             // bytes from the beginning, of each piece in turn
  static inline std::vector<char*> ready_;                // the piece for each of them, if there was time for it
  static inline std::vector<Range> reserved_;             // of the C library
};

}  // namespace engine
