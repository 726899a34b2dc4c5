#include "pages.h"

#include <dlfcn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace engine {
namespace {

// What V8 maps for a heap comes in pieces of this size, and no other memory does.
constexpr size_t kPieceBytes = size_t{256} << 10;
// A heap that asked for more than this would be another V8's.
constexpr size_t kMostPieces = 32;
// What the C library is asked for on behalf of an isolate, about. In parts: beyond a limit it would map each by itself.
constexpr size_t kPartBytes = size_t{80} << 10;
constexpr size_t kParts = 8;
constexpr size_t kStepBytes = size_t{32} << 10;  // filled in at once
// It keeps what is free at its end up to twice the largest piece that was ever mapped by itself and freed: this one.
constexpr size_t kKeptBytes = size_t{512} << 10;

constexpr char kTable[] = "_ZTVN2v84base13PageAllocatorE";
constexpr char kAllocate[] = "_ZN2v84base13PageAllocator13AllocatePagesEPvmmNS_13PageAllocator10PermissionE";
constexpr char kRelease[] = "_ZN2v84base13PageAllocator12ReleasePagesEPvmm";
constexpr size_t kTableSlots = 16;

using AllocateFunction = void* (*)(v8::PageAllocator*, void*, size_t, size_t, v8::PageAllocator::Permission);
using ReleaseFunction = bool (*)(v8::PageAllocator*, void*, size_t, size_t);
AllocateFunction allocate = nullptr;
ReleaseFunction release = nullptr;

void** FindSlot(void** table, const char* method) {
  void* address = dlsym(RTLD_DEFAULT, method);
  void** slot = std::find(table, table + kTableSlots, address);
  return address == nullptr || slot == table + kTableSlots ? nullptr : slot;
}

size_t PageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

bool Protect(void** first, void** last, int protection) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(first) & ~(PageBytes() - 1);
  return mprotect(reinterpret_cast<void*>(begin), reinterpret_cast<uintptr_t>(last + 1) - begin, protection) == 0;
}

// Changes nothing of what is there, and fails if it is no longer there: memory of the C library may have gone to
// anybody since. In steps, since a lock of all of the process's memory is held in each. Before Linux 5.14 it does
// nothing.
void FillIn(char* begin, size_t bytes) {
#ifndef MADV_POPULATE_WRITE
  constexpr int MADV_POPULATE_WRITE = 23;
#endif
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + PageBytes() - 1) & ~(PageBytes() - 1);
  const uintptr_t last = (reinterpret_cast<uintptr_t>(begin) + bytes) & ~(PageBytes() - 1);
  for (uintptr_t at = first; at < last; at += kStepBytes) {
    madvise(reinterpret_cast<void*>(at), std::min(kStepBytes, last - at), MADV_POPULATE_WRITE);
  }
}

// Up to the end of the last page that holds something.
size_t TouchedBytes(const char* begin, size_t bytes) {
  for (size_t end = bytes; end >= PageBytes(); end -= PageBytes()) {
    const char* page = begin + end - PageBytes();
    if (!std::all_of(page, page + PageBytes(), [](char byte) { return byte == 0; })) return end;
  }
  return 0;
}

}  // namespace

thread_local Pages::Making* Pages::making_ = nullptr;

bool Pages::Attach() {
  void** table = static_cast<void**>(dlsym(RTLD_DEFAULT, kTable));
  if (table == nullptr) return false;
  void** allocate_slot = FindSlot(table, kAllocate);
  void** release_slot = FindSlot(table, kRelease);
  if (allocate_slot == nullptr || release_slot == nullptr) return false;
  auto [first, last] = std::minmax(allocate_slot, release_slot);
  if (!Protect(first, last, PROT_READ | PROT_WRITE)) return false;
  allocate = reinterpret_cast<AllocateFunction>(std::exchange(*allocate_slot, reinterpret_cast<void*>(Allocate)));
  release = reinterpret_cast<ReleaseFunction>(std::exchange(*release_slot, reinterpret_cast<void*>(Release)));
  void* volatile freed = std::malloc(kKeptBytes);
  std::free(freed);
  return Protect(first, last, PROT_READ);
}

Pages::Making::Making() {
  // A thread that prepares may hold it and have no core just now: better none than to wait for it.
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock || allocate == nullptr) return;
  learns_ = touched_.empty();
  ready_.resize(touched_.size());
  ready_.swap(Pages::ready_);
  making_ = this;
}

Pages::Making::~Making() {
  if (making_ != this) return;
  making_ = nullptr;
  if (learns_) {
    Learn(seen_);
    return;
  }
  // V8 keeps some pieces of isolates that have ended, and then asks for less.
  for (; next_ < ready_.size(); next_++) {
    if (ready_[next_] != nullptr) Add(next_, ready_[next_]);
  }
}

void Pages::Add(size_t index, char* piece) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ready_[index] == nullptr) std::swap(ready_[index], piece);
  }
  if (piece != nullptr) allocator_->FreePages(piece, kPieceBytes);
}

void* Pages::Allocate(v8::PageAllocator* self, void* hint, size_t bytes, size_t alignment,
                      v8::PageAllocator::Permission access) {
  Making* making = making_;
  const bool is_piece = bytes == kPieceBytes && alignment == kPieceBytes && access == v8::PageAllocator::kReadWrite;
  if (making == nullptr || !is_piece) return allocate(self, hint, bytes, alignment, access);
  if (making->next_ < making->ready_.size()) {
    char* piece = making->ready_[making->next_++];
    if (piece != nullptr) return piece;
  }
  void* piece = allocate(self, hint, bytes, alignment, access);
  if (making->learns_ && piece != nullptr && making->seen_.size() < kMostPieces) {
    allocator_ = self;
    making->seen_.push_back({static_cast<char*>(piece), bytes});
  }
  return piece;
}

bool Pages::Release(v8::PageAllocator* self, void* begin, size_t bytes, size_t left) {
  if (making_ != nullptr) {
    for (Range& piece : making_->seen_) {
      if (piece.begin == begin) piece.bytes = left;
    }
  }
  return release(self, begin, bytes, left);
}

void Pages::Learn(const std::vector<Range>& seen) {
  std::vector<size_t> touched;
  for (const Range& piece : seen) touched.push_back(TouchedBytes(piece.begin, piece.bytes));
  std::lock_guard<std::mutex> lock(mutex_);
  touched_ = std::move(touched);
  ready_.resize(touched_.size());
}

// False when there is nothing more to prepare.
bool Pages::PreparePiece() {
  size_t index;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    index = static_cast<size_t>(std::find(ready_.begin(), ready_.end(), nullptr) - ready_.begin());
    if (index == ready_.size()) return false;
  }
  void* hint = allocator_->GetRandomMmapAddr();
  char* piece = static_cast<char*>(allocate(allocator_, hint, kPieceBytes, kPieceBytes, v8::PageAllocator::kReadWrite));
  if (piece == nullptr) return false;
  FillIn(piece, touched_[index]);
  Add(index, piece);
  return true;
}

void Pages::Reserve() {
  if (allocate == nullptr) return;
  std::array<void*, kParts> parts;
  for (void*& part : parts) part = std::malloc(kPartBytes);
  if (std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock); lock) {
    reserved_.clear();
    for (void* part : parts) {
      if (part != nullptr) reserved_.push_back({static_cast<char*>(part), kPartBytes});
    }
  }
  for (void* part : parts) std::free(part);
}

void Pages::Prepare() {
  if (allocate == nullptr) return;
  while (PreparePiece()) {
  }
  std::vector<Range> reserved;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    reserved.swap(reserved_);
  }
  for (const Range& range : reserved) FillIn(range.begin, range.bytes);
}

}  // namespace engine
