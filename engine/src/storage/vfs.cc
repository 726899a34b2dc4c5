#include "storage/vfs.h"

#include <openssl/rand.h>
#include <sqlite3.h>
#include <v8.h>

#include <cstring>

#include "isolate/realm.h"
#include "storage/page_store.h"

namespace engine::storage {
namespace {

struct File {
  sqlite3_file base;
  PageStore* store;
};

PageStore& StoreOf(sqlite3_file* file) { return *reinterpret_cast<File*>(file)->store; }

// The store whose database is being opened on this thread.
thread_local PageStore* opening = nullptr;

int Close(sqlite3_file*) { return SQLITE_OK; }

// SQLite reads whole pages, except for the header of the first.
int Read(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
  PageStore& store = StoreOf(file);
  char page[kPage];
  char* out = static_cast<char*>(into);
  const auto number = static_cast<uint32_t>(offset / static_cast<sqlite3_int64>(kPage)) + 1;
  const auto within = static_cast<size_t>(offset % static_cast<sqlite3_int64>(kPage));
  const auto size = static_cast<size_t>(amount);
  if (within + size > kPage) return SQLITE_IOERR_READ;
  if (number > store.pages()) {
    std::memset(out, 0, size);
    return SQLITE_IOERR_SHORT_READ;
  }
  if (size == kPage) return store.Read(number, out) ? SQLITE_OK : SQLITE_IOERR_READ;
  if (!store.Read(number, page)) return SQLITE_IOERR_READ;
  std::memcpy(out, page + within, size);
  return SQLITE_OK;
}

int Write(sqlite3_file* file, const void* content, int amount, sqlite3_int64 offset) {
  if (static_cast<size_t>(amount) != kPage || offset % static_cast<sqlite3_int64>(kPage) != 0)
    return SQLITE_IOERR_WRITE;
  const auto number = static_cast<uint32_t>(offset / static_cast<sqlite3_int64>(kPage)) + 1;
  return StoreOf(file).Write(number, static_cast<const char*>(content)) ? SQLITE_OK : SQLITE_FULL;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  StoreOf(file).Resize(static_cast<uint32_t>(size / static_cast<sqlite3_int64>(kPage)));
  return SQLITE_OK;
}

int Sync(sqlite3_file*, int) { return SQLITE_OK; }

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(StoreOf(file).pages()) * static_cast<sqlite3_int64>(kPage);
  return SQLITE_OK;
}

// A database has one connection.
int Lock(sqlite3_file*, int) { return SQLITE_OK; }
int CheckReserved(sqlite3_file*, int* is_reserved) {
  *is_reserved = 0;
  return SQLITE_OK;
}
int Control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return static_cast<int>(kPage); }
int Characteristics(sqlite3_file*) { return SQLITE_IOCAP_ATOMIC | SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

const sqlite3_io_methods kMethods = {
    1,          Close,           Read,    Write,   Truncate, Sync,    FileSize, Lock,   Lock, CheckReserved, Control,
    SectorSize, Characteristics, nullptr, nullptr, nullptr,  nullptr, nullptr,  nullptr};

// Journals and temporary files are in memory; SQLite never asks for another file than the database.
int Open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const bool is_database =
      (flags & SQLITE_OPEN_MAIN_DB) != 0 && name != nullptr && std::strcmp(name, kDatabaseName) == 0;
  if (!is_database || opening == nullptr) return SQLITE_CANTOPEN;
  reinterpret_cast<File*>(file)->store = opening;
  file->pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs*, const char*, int) { return SQLITE_OK; }
int Access(sqlite3_vfs*, const char*, int, int* result) {
  *result = 0;
  return SQLITE_OK;
}
int FullPathname(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}
int Randomness(sqlite3_vfs*, int size, char* out) {
  return RAND_bytes(reinterpret_cast<unsigned char*>(out), size) == 1 ? size : 0;
}
int Sleep(sqlite3_vfs*, int) { return 0; }

// The epoch in milliseconds since noon in Greenwich on November 24, 4714 B.C.
constexpr double kEpochInJulianMs = 2440587.5 * 86'400'000.0;

// The time that the worker sees: SQL must not be a way to a running clock.
int CurrentTimeInt64(sqlite3_vfs*, sqlite3_int64* now) {
  v8::Isolate* isolate = v8::Isolate::TryGetCurrent();
  const bool has_clock = isolate != nullptr && isolate->GetData(0) != nullptr;
  *now = static_cast<sqlite3_int64>(kEpochInJulianMs + (has_clock ? Realm::Of(isolate).now_ms() : 0));
  return SQLITE_OK;
}
int CurrentTime(sqlite3_vfs* vfs, double* now) {
  sqlite3_int64 ms = 0;
  CurrentTimeInt64(vfs, &ms);
  *now = static_cast<double>(ms) / 86'400'000.0;
  return SQLITE_OK;
}
int GetLastError(sqlite3_vfs*, int, char*) { return 0; }

sqlite3_vfs vfs = {2,          sizeof(File), 64,           nullptr,      "pages",          nullptr, Open,
                   Delete,     Access,       FullPathname, nullptr,      nullptr,          nullptr, nullptr,
                   Randomness, Sleep,        CurrentTime,  GetLastError, CurrentTimeInt64, nullptr, nullptr,
                   nullptr};

}  // namespace

int RegisterVfs() { return sqlite3_vfs_register(&vfs, 1); }

Opening::Opening(PageStore& store) { opening = &store; }
Opening::~Opening() { opening = nullptr; }

}  // namespace engine::storage
