#include "limits/icu_memory.h"

#include <dlfcn.h>
#include <malloc.h>

#include <cstdlib>
#include <string>

namespace engine {
namespace {

// ICU appends its version to each name. Node 24 has 77 and later.
constexpr int kOldest = 70;
constexpr int kNewest = 199;

using SetMemoryFunctions = void (*)(const void* context, void* (*take)(const void*, size_t),
                                    void* (*resize)(const void*, void*, size_t), void (*give)(const void*, void*),
                                    int* status);

}  // namespace

thread_local IcuMemory* IcuMemory::current_ = nullptr;

bool IcuMemory::Watch() {
  for (int version = kOldest; version <= kNewest; version++) {
    void* found = dlsym(RTLD_DEFAULT, ("u_setMemoryFunctions_" + std::to_string(version)).c_str());
    if (found == nullptr) continue;
    int status = 0;
    reinterpret_cast<SetMemoryFunctions>(found)(nullptr, Take, Resize, Give, &status);
    return status <= 0;
  }
  return false;
}

// Memory that ICU allocated earlier came from malloc too, so all of it can be freed here.
void* IcuMemory::Take(const void*, size_t size) {
  void* data = std::malloc(size);
  if (data != nullptr) Count(malloc_usable_size(data), 0);
  return data;
}

void* IcuMemory::Resize(const void*, void* data, size_t size) {
  const size_t before = malloc_usable_size(data);
  void* resized = std::realloc(data, size);
  if (resized != nullptr) Count(malloc_usable_size(resized), before);
  return resized;
}

void IcuMemory::Give(const void*, void* data) {
  Count(0, malloc_usable_size(data));
  std::free(data);
}

void IcuMemory::Count(size_t taken, size_t given) {
  IcuMemory* memory = current_;
  if (memory == nullptr) return;
  memory->used_ += static_cast<int64_t>(taken) - static_cast<int64_t>(given);
  if (memory->used() <= memory->ceiling_) return;
  memory->ceiling_ = SIZE_MAX;
  memory->full_();
}

}  // namespace engine
