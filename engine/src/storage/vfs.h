// The only file system that SQLite has in an engine. It knows one file for each database: the pages of a PageStore.
#pragma once

namespace engine::storage {

class PageStore;

// The name of every database. It says nothing: which pages are meant is said by Opening.
constexpr char kDatabaseName[] = "object";

// The result of sqlite3_vfs_register, for sqlite3_os_init().
int RegisterVfs();

// While it exists, a database that is opened on this thread has the pages of the store. Stack only.
class Opening final {
 public:
  explicit Opening(PageStore& store);
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
};

}  // namespace engine::storage
