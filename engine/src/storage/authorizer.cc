#include "storage/authorizer.h"

#include <sqlite3.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

namespace engine::storage {
namespace {

// In order, for a binary search. Left out: what describes the build of SQLite, and offsets in the file.
constexpr std::string_view kFunctions[] = {
    "->",
    "->>",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "bm25",
    "ceil",
    "ceiling",
    "changes",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "fts5_get_locale",
    "fts5_insttoken",
    "fts5_locale",
    "glob",
    "group_concat",
    "hex",
    "highlight",
    "if",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_insert",
    "json_array_length",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "jsonb",
    "jsonb_array",
    "jsonb_array_insert",
    "jsonb_extract",
    "jsonb_group_array",
    "jsonb_group_object",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_patch",
    "jsonb_remove",
    "jsonb_replace",
    "jsonb_set",
    "julianday",
    "lag",
    "last_insert_rowid",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "match",
    "max",
    "median",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "random",
    "randomblob",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtreecheck",
    "rtreedepth",
    "rtreenode",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "snippet",
    "soundex",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "subtype",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "total_changes",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unistr",
    "unistr_quote",
    "unixepoch",
    "unlikely",
    "upper",
    "zeroblob",
};
static_assert(std::is_sorted(std::begin(kFunctions), std::end(kFunctions)));

// What ALTER TABLE calls inside. SQLite refuses them in statements of others.
constexpr std::string_view kAlterFunctions[] = {
    "sqlite_add_constraint",  "sqlite_drop_column",   "sqlite_drop_constraint", "sqlite_fail",
    "sqlite_find_constraint", "sqlite_rename_column", "sqlite_rename_quotefix", "sqlite_rename_table",
    "sqlite_rename_test"};

// PRAGMAs by what they may be given.
constexpr std::string_view kReadPragmas[] = {"data_version", "page_size", "table_list"};
constexpr std::string_view kBooleanPragmas[] = {"case_sensitive_like",      "defer_foreign_keys", "foreign_keys",
                                                "ignore_check_constraints", "legacy_alter_table", "recursive_triggers",
                                                "reverse_unordered_selects"};
constexpr std::string_view kAnyPragmas[] = {"foreign_key_check", "foreign_key_list", "index_info",  "index_list",
                                            "index_xinfo",       "optimize",         "quick_check", "table_info",
                                            "table_list",        "table_xinfo"};
constexpr std::string_view kBooleans[] = {"0", "1", "false", "no", "off", "on", "true", "yes"};
constexpr std::string_view kModules[] = {"fts5", "fts5vocab", "rtree", "rtree_i32"};

std::string Lower(const char* name) {
  std::string lower = name == nullptr ? "" : name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

template <size_t kCount>
bool IsIn(const std::string_view (&list)[kCount], const std::string& word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool MayCall(const char* function) {
  const std::string name = Lower(function);
  return std::binary_search(std::begin(kFunctions), std::end(kFunctions), std::string_view(name)) ||
         IsIn(kAlterFunctions, name);
}

bool MayUsePragma(const char* pragma, const char* argument) {
  const std::string name = Lower(pragma);
  if (argument == nullptr && IsIn(kReadPragmas, name)) return true;
  if (IsIn(kAnyPragmas, name)) return argument == nullptr || !IsOurs(argument);
  return IsIn(kBooleanPragmas, name) && (argument == nullptr || IsIn(kBooleans, Lower(argument)));
}

bool IsTemporary(const char* database) { return database != nullptr && strcasecmp(database, "temp") == 0; }

}  // namespace

bool IsOurs(const char* name) { return name != nullptr && strncasecmp(name, "_cf_", 4) == 0; }

Verdict Judge(int action, const char* first, const char* second, const char* database) {
  const auto only_if = [](bool allowed) { return allowed ? Verdict::kAllowed : Verdict::kRefused; };
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return Verdict::kAllowed;
    case SQLITE_READ:
      return only_if(!IsOurs(first));
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_VTABLE:
    case SQLITE_REINDEX:
    case SQLITE_ANALYZE:
      return only_if(!IsOurs(first) && !IsTemporary(database));
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
      return only_if(!IsOurs(first) && !IsOurs(second) && !IsTemporary(database));
    case SQLITE_ALTER_TABLE:  // of the database `first`
      return only_if(!IsOurs(second) && !IsTemporary(first));
    case SQLITE_CREATE_VTABLE:
      return only_if(!IsOurs(first) && !IsTemporary(database) && IsIn(kModules, Lower(second)));
    case SQLITE_FUNCTION:
      return only_if(MayCall(second));
    case SQLITE_PRAGMA:
      return only_if(MayUsePragma(first, second));
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
      return Verdict::kTransaction;
    default:  // temporary tables, views, indexes and triggers; ATTACH and DETACH; what later versions of SQLite add
      return Verdict::kRefused;
  }
}

}  // namespace engine::storage
