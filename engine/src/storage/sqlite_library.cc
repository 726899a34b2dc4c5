#include "storage/sqlite_library.h"

#include <sqlite3.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#include "storage/vfs.h"

namespace engine::storage {
namespace {

thread_local Account* current = nullptr;

// --- Memory ---

// Precedes each allocation, and keeps what follows aligned.
struct alignas(16) Prefix {
  size_t size;
};

void* Allocate(int size) {
  const size_t bytes = static_cast<size_t>(size) + sizeof(Prefix);
  if (current != nullptr && !current->Take(bytes)) return nullptr;
  auto* prefix = static_cast<Prefix*>(std::malloc(bytes));
  if (prefix == nullptr) {
    if (current != nullptr) current->Give(bytes);
    return nullptr;
  }
  prefix->size = static_cast<size_t>(size);
  return prefix + 1;
}

Prefix* PrefixOf(void* memory) { return static_cast<Prefix*>(memory) - 1; }

void Free(void* memory) {
  if (memory == nullptr) return;
  Prefix* prefix = PrefixOf(memory);
  if (current != nullptr) current->Give(prefix->size + sizeof(Prefix));
  std::free(prefix);
}

void* Reallocate(void* memory, int size) {
  Prefix* prefix = PrefixOf(memory);
  const size_t before = prefix->size;
  const size_t after = static_cast<size_t>(size);
  if (current != nullptr && after > before && !current->Take(after - before)) return nullptr;
  auto* moved = static_cast<Prefix*>(std::realloc(prefix, after + sizeof(Prefix)));
  if (moved == nullptr) {
    if (current != nullptr && after > before) current->Give(after - before);
    return nullptr;
  }
  if (current != nullptr && after < before) current->Give(before - after);
  moved->size = after;
  return moved + 1;
}

int SizeOf(void* memory) { return memory == nullptr ? 0 : static_cast<int>(PrefixOf(memory)->size); }
int RoundUp(int size) { return (size + 7) & ~7; }
int Started(void*) { return SQLITE_OK; }
void Stopped(void*) {}

const sqlite3_mem_methods kMemory = {Allocate, Free, Reallocate, SizeOf, RoundUp, Started, Stopped, nullptr};

// --- Mutexes ---
// SQLite needs them for what all connections share: its pseudo-random numbers and the list of file systems.

constexpr int kStaticMutexes = 16;  // more than SQLite has

struct Mutex {
  std::recursive_mutex mutex;
};

Mutex* StaticMutex(int kind) {
  static Mutex mutexes[kStaticMutexes];
  return &mutexes[kind % kStaticMutexes];
}

int MutexesStarted() { return SQLITE_OK; }

sqlite3_mutex* MakeMutex(int kind) {
  if (kind > SQLITE_MUTEX_RECURSIVE) return reinterpret_cast<sqlite3_mutex*>(StaticMutex(kind));
  return reinterpret_cast<sqlite3_mutex*>(new (std::nothrow) Mutex());
}

void FreeMutex(sqlite3_mutex* mutex) { delete reinterpret_cast<Mutex*>(mutex); }
void Enter(sqlite3_mutex* mutex) { reinterpret_cast<Mutex*>(mutex)->mutex.lock(); }
int TryEnter(sqlite3_mutex* mutex) {
  return reinterpret_cast<Mutex*>(mutex)->mutex.try_lock() ? SQLITE_OK : SQLITE_BUSY;
}
void LeaveMutex(sqlite3_mutex* mutex) { reinterpret_cast<Mutex*>(mutex)->mutex.unlock(); }

const sqlite3_mutex_methods kMutexes = {MutexesStarted, MutexesStarted, MakeMutex, FreeMutex, Enter,
                                        TryEnter,       LeaveMutex,     nullptr,   nullptr};

}  // namespace

AccountScope::AccountScope(Account& account) : outer_(current) { current = &account; }
AccountScope::~AccountScope() { current = outer_; }

bool StartSqlite() {
  static const bool works = [] {
    // No account: what SQLite takes now stays for the life of the process.
    Account* const outer = current;
    current = nullptr;
    const bool started = sqlite3_config(SQLITE_CONFIG_MULTITHREAD) == SQLITE_OK &&
                         sqlite3_config(SQLITE_CONFIG_MUTEX, &kMutexes) == SQLITE_OK &&
                         sqlite3_config(SQLITE_CONFIG_MALLOC, &kMemory) == SQLITE_OK &&
                         sqlite3_initialize() == SQLITE_OK;
    current = outer;
    return started;
  }();
  return works;
}

}  // namespace engine::storage

// What SQLite calls instead of its own code for Unix or Windows.
extern "C" int sqlite3_os_init() { return engine::storage::RegisterVfs(); }
extern "C" int sqlite3_os_end() { return SQLITE_OK; }
