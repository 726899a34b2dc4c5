#include "storage/sql_errors.h"

namespace engine::storage {

#define ATOLL_CODES(X)                                                                                             \
  X(ERROR)                                                                                                         \
  X(INTERNAL) X(PERM) X(ABORT) X(BUSY) X(LOCKED) X(NOMEM) X(READONLY) X(INTERRUPT) X(IOERR) X(CORRUPT) X(NOTFOUND) \
      X(FULL) X(CANTOPEN) X(PROTOCOL) X(EMPTY) X(SCHEMA) X(TOOBIG) X(CONSTRAINT) X(MISMATCH) X(MISUSE) X(NOLFS)    \
          X(AUTH) X(FORMAT) X(RANGE) X(NOTADB) X(ERROR_MISSING_COLLSEQ) X(ERROR_RETRY) X(ABORT_ROLLBACK)           \
              X(LOCKED_VTAB) X(IOERR_READ) X(IOERR_SHORT_READ) X(IOERR_WRITE) X(IOERR_NOMEM) X(CORRUPT_VTAB)       \
                  X(CORRUPT_INDEX) X(CONSTRAINT_CHECK) X(CONSTRAINT_COMMITHOOK) X(CONSTRAINT_FOREIGNKEY)           \
                      X(CONSTRAINT_FUNCTION) X(CONSTRAINT_NOTNULL) X(CONSTRAINT_PRIMARYKEY) X(CONSTRAINT_TRIGGER)  \
                          X(CONSTRAINT_UNIQUE) X(CONSTRAINT_VTAB) X(CONSTRAINT_ROWID) X(CONSTRAINT_PINNED)         \
                              X(CONSTRAINT_DATATYPE)

const char* CodeName(int code) {
  switch (code) {
#define ATOLL_CASE(name) \
  case SQLITE_##name:    \
    return "SQLITE_" #name;
    ATOLL_CODES(ATOLL_CASE)
#undef ATOLL_CASE
    default:
      return "SQLITE_ERROR";
  }
}

std::string ErrorText(const std::string& message, int code) {
  const int primary = code & 0xff;
  std::string text = message + ": " + CodeName(primary);
  if (primary != code) text += std::string(" (extended: ") + CodeName(code) + ")";
  return text;
}

std::string ErrorText(sqlite3* connection, int code) {
  std::string message = sqlite3_errmsg(connection);
  if (const int offset = sqlite3_error_offset(connection); offset >= 0) {
    message += " at offset " + std::to_string(offset);
  }
  return ErrorText(message, code);
}

}  // namespace engine::storage
