// SQL functions that replace those of SQLite, which may take minutes for two long texts and cannot be interrupted.
#pragma once

#include <sqlite3.h>

namespace engine::storage {

// instr(), replace(), trim(), ltrim(), rtrim() and unhex(), in linear time. The result of SQLite.
int AddFunctions(sqlite3* connection);

}  // namespace engine::storage
