// How a database is opened, and its transactions. Its statements are in database_statements.cc.
#include "storage/database.h"

#include <algorithm>
#include <utility>

#include "storage/authorizer.h"
#include "storage/functions.h"
#include "storage/sql_errors.h"
#include "storage/vfs.h"

namespace engine::storage {
namespace {

constexpr char kBrokenConstraints[] =
    "Durable Object was reset and rolled back to its last known good state because the application left the database "
    "in "
    "a state where constraints were violated: ";

constexpr std::pair<int, int> kLimits[] = {
    {SQLITE_LIMIT_LENGTH, 4 << 20},      {SQLITE_LIMIT_SQL_LENGTH, 100'000}, {SQLITE_LIMIT_COLUMN, 100},
    {SQLITE_LIMIT_EXPR_DEPTH, 100},      {SQLITE_LIMIT_COMPOUND_SELECT, 5},  {SQLITE_LIMIT_VDBE_OP, 25'000},
    {SQLITE_LIMIT_FUNCTION_ARG, 127},    {SQLITE_LIMIT_ATTACHED, 0},         {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 100}, {SQLITE_LIMIT_TRIGGER_DEPTH, 10},   {SQLITE_LIMIT_WORKER_THREADS, 0},
};

}  // namespace

Database::Database(Account& account, int fd, uint32_t pages, uint64_t sequence, uint64_t most_pages, int64_t alarm_ms,
                   std::function<bool()> must_stop)
    : pages_(account, fd, pages, sequence),
      most_pages_(std::clamp<uint64_t>(most_pages, 1, UINT32_MAX - 1)),
      must_stop_(std::move(must_stop)),
      alarm_ms_(alarm_ms),
      committed_alarm_ms_(alarm_ms) {}

Database::~Database() { CloseConnection(); }

bool Database::Open() {
  if (!StartSqlite()) {
    error_ = "SQLite cannot be used in this engine";
    return false;
  }
  const Opening opening(pages_);
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(kDatabaseName, &connection_, kFlags, nullptr);
  if (code != SQLITE_OK) {
    error_ = ErrorText(connection_ == nullptr ? "out of memory" : sqlite3_errmsg(connection_), code);
    return false;
  }
  Configure();
  if (const int added = AddFunctions(connection_); added != SQLITE_OK) {
    Fail(added);
    return false;
  }
  // The first statement reads the first page, so that a file that is no database is found now.
  return Run("PRAGMA locking_mode=EXCLUSIVE") && Run("PRAGMA journal_mode=MEMORY") && Run("PRAGMA cache_size=256") &&
         Run(("PRAGMA max_page_count=" + std::to_string(most_pages_)).c_str()) && Ask("PRAGMA schema_version") >= 0;
}

void Database::Configure() {
  for (const auto& [limit, value] : kLimits) sqlite3_limit(connection_, limit, value);
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_set_authorizer(connection_, Authorize, this);
  sqlite3_progress_handler(connection_, kStepsBetweenLooks, OnProgress, this);
}

void Database::CloseConnection() {
  cursors_.clear();
  by_text_.clear();
  idle_.clear();
  lost_.clear();
  if (connection_ == nullptr) return;
  for (sqlite3_stmt* left = nullptr; (left = sqlite3_next_stmt(connection_, nullptr)) != nullptr;) {
    sqlite3_finalize(left);
  }
  sqlite3_progress_handler(connection_, 0, nullptr, nullptr);
  sqlite3_close_v2(connection_);
  connection_ = nullptr;
}

int Database::OnProgress(void* self) { return static_cast<Database*>(self)->must_stop_() ? 1 : 0; }

int Database::Authorize(void* self, int action, const char* first, const char* second, const char* database,
                        const char*) {
  auto* const db = static_cast<Database*>(self);
  if (db->internal_) return SQLITE_OK;
  if (action == SQLITE_ALTER_TABLE) db->alters_ = true;
  const Verdict verdict = Judge(action, first, second, database);
  if (verdict == Verdict::kTransaction) db->asked_for_transaction_ = true;
  return verdict == Verdict::kAllowed ? SQLITE_OK : SQLITE_DENY;
}

// --- Transactions ---

bool Database::Begin() {
  if (in_transaction_) return true;
  if (is_broken_ || !Run("BEGIN")) return false;
  in_transaction_ = true;
  return true;
}

void Database::Break(std::string why) {
  if (is_broken_) return;
  is_broken_ = true;
  error_ = std::move(why);
  in_transaction_ = false;
}

bool Database::BeginInner(bool holds) {
  if (!Begin() || !Run("SAVEPOINT s")) return false;
  outer_alarms_.emplace_back(alarm_ms_, alarm_changed_);
  if (holds) held_++;
  return true;
}

bool Database::EndInner(bool holds, bool keep) {
  if (holds && held_ > 0) held_--;
  if (outer_alarms_.empty()) return false;
  const auto [alarm_ms, changed] = outer_alarms_.back();
  outer_alarms_.pop_back();
  if (!keep) {
    alarm_ms_ = alarm_ms;
    alarm_changed_ = changed;
  }
  if (is_broken_) return false;
  return (keep || Run("ROLLBACK TO s")) && Run("RELEASE s");
}

// SQLite keeps the pages of a table that is dropped. So the database is opened anew without any page.
bool Database::EraseAll() {
  if (held_ > 0 || !outer_alarms_.empty()) {
    error_ = "Cannot call deleteAll() within a transaction";
    return false;
  }
  if (is_broken_) return false;
  CloseConnection();
  in_transaction_ = false;
  pages_.Erase();
  if (Open()) return true;
  Break(error_);
  return false;
}

bool Database::SetAlarm(int64_t ms) {
  if (is_broken_) return false;
  alarm_ms_ = ms;
  alarm_changed_ = true;
  return true;
}

void Database::TakeAlarm() {
  if (!alarm_changed_) alarm_ms_ = -1;  // Python keeps it until it is handled, so deleteAlarm() must still say so
}

Database::Ended Database::EndEntry(std::string& payload) {
  if (is_broken_) return Ended::kBroken;
  if (held_ > 0 || !HasChanges()) return Ended::kUnchanged;
  if (in_transaction_) {
    outer_alarms_.clear();
    if (!Run("COMMIT")) {
      const bool violated = (sqlite3_extended_errcode(connection_) & 0xff) == SQLITE_CONSTRAINT;
      std::string why =
          violated ? kBrokenConstraints + ErrorText(sqlite3_errmsg(connection_), SQLITE_CONSTRAINT) : error_;
      Run("ROLLBACK");
      pages_.Rollback();
      Break(std::move(why));
      return Ended::kBroken;
    }
    in_transaction_ = false;
  }
  const bool deletes = alarm_changed_ && alarm_ms_ < 0;
  // Nothing is to be said about an alarm that was set and deleted again, or that never was.
  if (deletes && committed_alarm_ms_ < 0) alarm_changed_ = false;
  if (!pages_.IsChanged() && !alarm_changed_) return Ended::kUnchanged;
  AlarmChange alarm;
  if (alarm_changed_) alarm = {static_cast<uint8_t>(deletes ? 2 : 1), alarm_ms_};
  pages_.Commit(alarm, payload);
  committed_alarm_ms_ = alarm_ms_;
  alarm_changed_ = false;
  return Ended::kCommitted;
}

}  // namespace engine::storage
