// What a worker reads when SQL fails.
#pragma once

#include <sqlite3.h>

#include <string>

namespace engine::storage {

// SQLite's name of a result code, such as SQLITE_CONSTRAINT_UNIQUE.
const char* CodeName(int code);

// The last error of a connection: "<message>[ at offset N]: SQLITE_X[ (extended: SQLITE_X_Y)]".
std::string ErrorText(sqlite3* connection, int code);
// The same for an error that SQLite did not report itself.
std::string ErrorText(const std::string& message, int code);

}  // namespace engine::storage
