// SQLite as a library of the process: its memory, its mutexes, its start.
//
// SQLite is compiled without an operating system: its memory comes from here, and its only file system is vfs.cc. All
// memory of a worker's databases is counted in an account, so that a worker that stores or sorts too much gets
// SQLITE_NOMEM and the process stays as it was.
#pragma once

#include <cstddef>

namespace engine::storage {

// What all databases of one worker use: SQLite's own memory, and pages that are not in a file yet.
class Account final {
 public:
  explicit Account(size_t limit) : limit_(limit) {}
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  // False if that would be too much.
  bool Take(size_t bytes) {
    if (bytes > limit_ - used_) return false;
    used_ += bytes;
    return true;
  }
  void Give(size_t bytes) { used_ -= bytes; }
  size_t used() const { return used_; }

 private:
  const size_t limit_;
  size_t used_ = 0;
};

// While it exists, the memory that SQLite takes and returns on this thread belongs to the account. Stack only. A
// database is used under the account of its worker and no other.
class AccountScope final {
 public:
  explicit AccountScope(Account& account);
  ~AccountScope();
  AccountScope(const AccountScope&) = delete;
  AccountScope& operator=(const AccountScope&) = delete;

 private:
  Account* const outer_;
};

// Prepares SQLite, the first time; from any thread. False if it cannot be used.
bool StartSqlite();

}  // namespace engine::storage
