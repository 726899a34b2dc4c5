// The database of one object: a connection of SQLite on a PageStore, its statements and its transactions.
//
// The first write of an entry into JavaScript begins an implicit transaction, which EndEntry() commits. Savepoints
// inside it are what storage.transaction() and transactionSync() use; an open transaction() holds the commit back. The
// alarm of the object is part of the transaction. After an error that made SQLite roll back the whole transaction, or a
// commit that failed, the database is broken: the object must be reset, because its code believes in writes that are
// undone.
//
// Everything happens inside the worker's turn.
#pragma once

#include <sqlite3.h>
#include <v8.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "storage/page_store.h"
#include "storage/sqlite_library.h"

namespace engine::storage {

// A compiled statement. Idle ones are kept for the next use of the same text.
struct Statement {
  Statement() = default;
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  std::string sql;
  bool internal = false;  // of the platform: not restricted
  bool alters = false;    // ALTER TABLE, whose new name SQLite does not show to the authorizer
  sqlite3_stmt* handle = nullptr;
  v8::Global<v8::Array> names;  // of its columns, for natives
  int names_of = -1;            // how often it had been compiled then
};

// A statement that has begun, from its first row to its last.
struct Cursor {
  std::unique_ptr<Statement> statement;
  bool is_begun = false;
  // What JavaScript knows of it, if it has more rows.
  class Database* owner = nullptr;
  uint32_t id = 0;
  v8::Global<v8::Object> holder;  // weak
};

enum class Step { kRow, kDone, kError };

class Database final {
 public:
  // `must_stop` says that V8 is ending the worker's code: statements end too.
  Database(Account& account, int fd, uint32_t pages, uint64_t sequence, uint64_t most_pages, int64_t alarm_ms,
           std::function<bool()> must_stop);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // False if it cannot be opened; error() says why.
  bool Open();
  // The words of the last failure.
  const std::string& error() const { return error_; }
  bool is_broken() const { return is_broken_; }
  PageStore& pages() { return pages_; }

  // --- Statements ---

  // Compiles the last statement of `sql` and runs all others. Null if that fails.
  std::unique_ptr<Cursor> Prepare(std::string_view sql, bool internal);
  Step Next(Cursor& cursor);
  // Ends a statement, which may not have reached its last row.
  void Finish(std::unique_ptr<Cursor> cursor);
  // So far.
  static uint64_t RowsRead(const Cursor& cursor);
  static uint64_t RowsWritten(const Cursor& cursor);
  // Runs a statement of the platform. False if it fails.
  bool Run(const char* sql);
  // The same for one with a single number as its result; -1 if it fails.
  int64_t Ask(const char* sql);
  // Sets error() to the last error of SQLite.
  void Fail(int code);

  // Cursors that JavaScript holds, by number.
  uint32_t NextCursor();
  void Keep(std::unique_ptr<Cursor> cursor) { cursors_.emplace(cursor->id, std::move(cursor)); }
  Cursor* Find(uint32_t id);
  std::unique_ptr<Cursor> Take(uint32_t id);
  // JavaScript has lost the holder of a cursor. Called in a garbage collection.
  void Lost(uint32_t id) { lost_.push_back(id); }
  void DropLost();

  // --- Transactions ---

  // Begins a transaction inside the running one. `holds`: it may outlast this entry.
  bool BeginInner(bool holds);
  // False if it is not possible because the database is broken.
  bool EndInner(bool holds, bool keep);
  bool EraseAll();

  int64_t alarm_ms() const { return alarm_ms_; }
  bool SetAlarm(int64_t ms);
  // The alarm is being delivered: the object sees none.
  void TakeAlarm();

  // The commit that everything done so far will be part of.
  uint64_t CommitOfNow() const { return pages_.sequence() + (HasChanges() ? 1 : 0); }
  enum class Ended { kUnchanged, kCommitted, kBroken };
  // Ends the implicit transaction, and appends the payload of its COMMIT frame.
  Ended EndEntry(std::string& payload);

 private:
  static constexpr size_t kIdle = 64;             // statements
  static constexpr size_t kIdleBytes = 16'384;    // of one statement's text
  static constexpr int kStepsBetweenLooks = 500;  // of SQLite's virtual machine

  static int Authorize(void* self, int action, const char* first, const char* second, const char* database,
                       const char* trigger);
  static int OnProgress(void* self);
  void Configure();
  void CloseConnection();
  bool HasChanges() const { return pages_.IsChanged() || in_transaction_ || alarm_changed_; }
  bool Begin();
  void Break(std::string why);
  std::unique_ptr<Statement> TakeIdle(std::string_view sql, bool internal);
  std::unique_ptr<Statement> Compile(std::string_view sql, bool internal, size_t* used);
  void KeepIdle(std::unique_ptr<Statement> statement);
  Step StepAltering(Cursor& cursor);

  PageStore pages_;
  const uint64_t most_pages_;
  const std::function<bool()> must_stop_;
  sqlite3* connection_ = nullptr;
  std::string error_;
  bool is_broken_ = false;

  std::list<std::unique_ptr<Statement>> idle_;  // the last used first
  std::unordered_map<std::string_view, std::list<std::unique_ptr<Statement>>::iterator> by_text_;
  std::unordered_map<uint32_t, std::unique_ptr<Cursor>> cursors_;
  std::vector<uint32_t> lost_;
  uint32_t next_cursor_ = 0;

  // While SQLite runs.
  bool internal_ = false;
  bool alters_ = false;
  bool asked_for_transaction_ = false;

  bool in_transaction_ = false;
  uint32_t held_ = 0;
  int64_t alarm_ms_;
  int64_t committed_alarm_ms_;
  bool alarm_changed_ = false;
  std::vector<std::pair<int64_t, bool>> outer_alarms_;  // at the start of each inner transaction
};

}  // namespace engine::storage
