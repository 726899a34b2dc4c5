// What SQL of a worker may do. SQLite asks while it compiles a statement.
#pragma once

namespace engine::storage {

enum class Verdict { kAllowed, kRefused, kTransaction };

// kTransaction: refused because the JavaScript API of transactions must be used. The arguments are those of
// sqlite3_set_authorizer.
Verdict Judge(int action, const char* first, const char* second, const char* database);

// True for names that only the platform uses: _cf_KV and what begins like it.
bool IsOurs(const char* name);

}  // namespace engine::storage
