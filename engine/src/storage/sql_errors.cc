#include "storage/sql_errors.h"

#include <algorithm>
#include <iterator>

namespace engine::storage {
namespace {

struct Code {
  int number;
  const char* name;
};

#define CODE(name) {name, #name}

constexpr Code kCodes[] = {
    CODE(SQLITE_ERROR),
    CODE(SQLITE_INTERNAL),
    CODE(SQLITE_PERM),
    CODE(SQLITE_ABORT),
    CODE(SQLITE_BUSY),
    CODE(SQLITE_LOCKED),
    CODE(SQLITE_NOMEM),
    CODE(SQLITE_READONLY),
    CODE(SQLITE_INTERRUPT),
    CODE(SQLITE_IOERR),
    CODE(SQLITE_CORRUPT),
    CODE(SQLITE_NOTFOUND),
    CODE(SQLITE_FULL),
    CODE(SQLITE_CANTOPEN),
    CODE(SQLITE_PROTOCOL),
    CODE(SQLITE_SCHEMA),
    CODE(SQLITE_TOOBIG),
    CODE(SQLITE_CONSTRAINT),
    CODE(SQLITE_MISMATCH),
    CODE(SQLITE_MISUSE),
    CODE(SQLITE_AUTH),
    CODE(SQLITE_RANGE),
    CODE(SQLITE_NOTADB),
    CODE(SQLITE_ERROR_MISSING_COLLSEQ),
    CODE(SQLITE_ERROR_RETRY),
    CODE(SQLITE_ABORT_ROLLBACK),
    CODE(SQLITE_LOCKED_VTAB),
    CODE(SQLITE_IOERR_READ),
    CODE(SQLITE_IOERR_SHORT_READ),
    CODE(SQLITE_IOERR_WRITE),
    CODE(SQLITE_IOERR_NOMEM),
    CODE(SQLITE_CORRUPT_VTAB),
    CODE(SQLITE_CORRUPT_INDEX),
    CODE(SQLITE_CONSTRAINT_CHECK),
    CODE(SQLITE_CONSTRAINT_FOREIGNKEY),
    CODE(SQLITE_CONSTRAINT_FUNCTION),
    CODE(SQLITE_CONSTRAINT_NOTNULL),
    CODE(SQLITE_CONSTRAINT_PRIMARYKEY),
    CODE(SQLITE_CONSTRAINT_TRIGGER),
    CODE(SQLITE_CONSTRAINT_UNIQUE),
    CODE(SQLITE_CONSTRAINT_VTAB),
    CODE(SQLITE_CONSTRAINT_ROWID),
    CODE(SQLITE_CONSTRAINT_PINNED),
    CODE(SQLITE_CONSTRAINT_DATATYPE),
};

#undef CODE

}  // namespace

const char* CodeName(int code) {
  const auto* found =
      std::find_if(std::begin(kCodes), std::end(kCodes), [&](const Code& each) { return each.number == code; });
  return found == std::end(kCodes) ? "SQLITE_ERROR" : found->name;
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
