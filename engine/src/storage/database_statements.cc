// The statements of a database, from their text to their last row.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "storage/database.h"
#include "storage/sql_errors.h"

namespace engine::storage {
namespace {

constexpr char kNoStatement[] = "SQL code did not contain a statement.";
constexpr char kOnlyTheLast[] =
    "When executing multiple SQL statements in a single call, only the last statement can have parameters.";
constexpr char kUseTransactions[] =
    "To execute a transaction, please use the state.storage.transaction() or state.storage.transactionSync() APIs "
    "instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. They roll back when their function throws, and they "
    "fit the automatic transaction around all writes of one event.";
constexpr char kCountOurs[] = "SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_cf\\_%' ESCAPE '\\'";

// Counters that tools/count_rows.mjs adds to SQLite.
constexpr int kRowsRead = 9;
constexpr int kRowsWritten = 10;

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

struct Finalize {
  void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
};

}  // namespace

void Database::Fail(int code) { error_ = ErrorText(connection_, code); }

// --- Compiled statements ---

// What was compiled for the platform is never used for the same text of a worker, which is restricted.
std::unique_ptr<Statement> Database::TakeIdle(std::string_view sql, bool internal) {
  const auto found = by_text_.find(sql);
  if (found == by_text_.end() || (*found->second)->internal != internal) return nullptr;
  std::unique_ptr<Statement> statement = std::move(*found->second);
  idle_.erase(found->second);
  by_text_.erase(found);
  return statement;
}

void Database::KeepIdle(std::unique_ptr<Statement> statement) {
  sqlite3_reset(statement->handle);
  sqlite3_clear_bindings(statement->handle);
  if (statement->sql.size() <= kIdleBytes && !by_text_.contains(statement->sql)) {
    idle_.push_front(std::move(statement));
    by_text_.emplace(idle_.front()->sql, idle_.begin());
    if (idle_.size() <= kIdle) return;
    statement = std::move(idle_.back());
    by_text_.erase(statement->sql);
    idle_.pop_back();
  }
}

// The first statement of `sql`; `used` is its length. Null with an empty error if there is none.
std::unique_ptr<Statement> Database::Compile(std::string_view sql, bool internal, size_t* used) {
  error_.clear();
  sqlite3_stmt* handle = nullptr;
  const char* tail = nullptr;
  internal_ = internal;
  alters_ = asked_for_transaction_ = false;
  const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()), 0, &handle, &tail);
  internal_ = false;
  std::unique_ptr<sqlite3_stmt, Finalize> owned(handle);
  if (code != SQLITE_OK) {
    if (asked_for_transaction_) {
      error_ = kUseTransactions;
    } else {
      Fail(code);
    }
    return nullptr;
  }
  *used = static_cast<size_t>(tail - sql.data());
  if (handle == nullptr) return nullptr;
  auto statement = std::make_unique<Statement>();
  statement->sql = sql.substr(0, *used);
  statement->internal = internal;
  statement->alters = alters_;
  statement->handle = owned.release();
  return statement;
}

std::unique_ptr<Cursor> Database::Prepare(std::string_view sql, bool internal) {
  DropLost();
  if (connection_ == nullptr || is_broken_) return nullptr;
  auto cursor = std::make_unique<Cursor>();
  sql = TrimEnd(sql);
  if ((cursor->statement = TakeIdle(sql, internal)) != nullptr) return cursor;
  while (true) {
    size_t used = 0;
    cursor->statement = Compile(sql, internal, &used);
    if (cursor->statement == nullptr) {
      if (error_.empty()) error_ = kNoStatement;
      return nullptr;
    }
    sql.remove_prefix(used);
    if (sql.empty()) return cursor;
    if (sqlite3_bind_parameter_count(cursor->statement->handle) > 0) {
      error_ = kOnlyTheLast;
      return nullptr;
    }
    Step step;
    while ((step = Next(*cursor)) == Step::kRow) {
    }
    if (step == Step::kError) return nullptr;
    Finish(std::move(cursor));
    cursor = std::make_unique<Cursor>();
  }
}

void Database::Finish(std::unique_ptr<Cursor> cursor) {
  if (cursor->statement != nullptr) KeepIdle(std::move(cursor->statement));
}

// --- Running them ---

Step Database::Next(Cursor& cursor) {
  sqlite3_stmt* handle = cursor.statement->handle;
  const bool writes = !cursor.is_begun && sqlite3_stmt_readonly(handle) == 0;
  if (!cursor.is_begun) {
    if (writes && !Begin()) return Step::kError;
    if (writes && cursor.statement->alters) return StepAltering(cursor);
    cursor.is_begun = true;
    sqlite3_stmt_status(handle, kRowsRead, 1);
    sqlite3_stmt_status(handle, kRowsWritten, 1);
  }
  const bool outer = std::exchange(internal_, cursor.statement->internal);
  const int code = sqlite3_step(handle);
  internal_ = outer;
  const bool failed = code != SQLITE_ROW && code != SQLITE_DONE;
  if (failed) Fail(code);
  if (code == SQLITE_ROW) return Step::kRow;
  if (!failed) return Step::kDone;
  // SQLite has rolled back everything, and not only this statement.
  if (in_transaction_ && sqlite3_get_autocommit(connection_) != 0) {
    pages_.Rollback();
    Break(error_);
  }
  return Step::kError;
}

// ALTER TABLE … RENAME TO may make a name that only the platform uses. Then it is undone.
Step Database::StepAltering(Cursor& cursor) {
  const int64_t before = Ask(kCountOurs);
  if (before < 0 || !Run("SAVEPOINT a")) return Step::kError;
  cursor.is_begun = true;
  Step step;
  while ((step = Next(cursor)) == Step::kRow) {
  }
  if (is_broken_) return Step::kError;
  std::string why = std::move(error_);
  sqlite3_reset(cursor.statement->handle);
  if (step == Step::kDone && Ask(kCountOurs) != before) {
    why = ErrorText("not authorized", SQLITE_AUTH);
    step = Step::kError;
  }
  if (step == Step::kError) Run("ROLLBACK TO a");
  if (!Run("RELEASE a")) return Step::kError;
  error_ = std::move(why);
  return step;
}

bool Database::Run(const char* sql) {
  std::unique_ptr<Statement> statement = TakeIdle(sql, true);
  size_t used = 0;
  if (statement == nullptr) statement = Compile(sql, true, &used);
  if (statement == nullptr) return false;
  const bool outer = std::exchange(internal_, true);
  int code;
  while ((code = sqlite3_step(statement->handle)) == SQLITE_ROW) {
  }
  internal_ = outer;
  if (code != SQLITE_DONE) Fail(code);
  KeepIdle(std::move(statement));
  return code == SQLITE_DONE;
}

int64_t Database::Ask(const char* sql) {
  if (connection_ == nullptr) return -1;
  std::unique_ptr<Statement> statement = TakeIdle(sql, true);
  size_t used = 0;
  if (statement == nullptr) statement = Compile(sql, true, &used);
  if (statement == nullptr) return -1;
  const bool outer = std::exchange(internal_, true);
  const int code = sqlite3_step(statement->handle);
  internal_ = outer;
  int64_t result = -1;
  if (code == SQLITE_ROW) {
    result = sqlite3_column_int64(statement->handle, 0);
  } else if (code != SQLITE_DONE) {
    Fail(code);
  }
  KeepIdle(std::move(statement));
  return result;
}

// --- Counting rows ---

uint64_t Database::RowsRead(const Cursor& cursor) {
  return static_cast<uint32_t>(sqlite3_stmt_status(cursor.statement->handle, kRowsRead, 0));
}

uint64_t Database::RowsWritten(const Cursor& cursor) {
  return static_cast<uint32_t>(sqlite3_stmt_status(cursor.statement->handle, kRowsWritten, 0));
}

// --- Cursors that JavaScript holds ---

uint32_t Database::NextCursor() {
  do next_cursor_++;
  while (next_cursor_ == 0 || cursors_.contains(next_cursor_));
  return next_cursor_;
}

Cursor* Database::Find(uint32_t id) {
  const auto found = cursors_.find(id);
  return found == cursors_.end() ? nullptr : found->second.get();
}

std::unique_ptr<Cursor> Database::Take(uint32_t id) {
  const auto found = cursors_.find(id);
  if (found == cursors_.end()) return nullptr;
  std::unique_ptr<Cursor> cursor = std::move(found->second);
  cursors_.erase(found);
  return cursor;
}

void Database::DropLost() {
  for (const uint32_t id : std::exchange(lost_, {})) {
    if (std::unique_ptr<Cursor> cursor = Take(id)) Finish(std::move(cursor));
  }
}

}  // namespace engine::storage
