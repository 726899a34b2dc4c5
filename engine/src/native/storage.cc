// The storage of objects: SQL, inner transactions, the alarm. web/objects/ makes ctx.storage of it.
//
// A slot names the database of an object. Every function throws for a slot that is not open.
#include "storage/storage.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "isolate/realm.h"
#include "native/arguments.h"
#include "native/native.h"
#include "worker/worker.h"

namespace engine::native {
namespace {

using storage::Cursor;
using storage::Database;
using storage::Step;

constexpr char kGone[] = "Durable Object storage is no longer accessible.";
constexpr char kEarlierError[] = "Cannot commit transaction due to an earlier SQL critical error";
constexpr int kMostSql = 1'000'000;  // characters; SQLite refuses far less
constexpr size_t kMostReason = 16'384;
constexpr uint32_t kLookEvery = 64;  // rows between two looks at the limits of the worker

void ThrowError(v8::Isolate* isolate, const std::string& message) {
  isolate->ThrowException(v8::Exception::Error(ToV8(isolate, message)));
}

// What every function needs: the worker and the database of the slot in its first argument.
class Target final {
 public:
  explicit Target(const Arguments& args) : isolate_(args.GetIsolate()) {
    void* realm = isolate_->GetData(0);
    worker_ = realm == nullptr ? nullptr : static_cast<Realm*>(realm)->worker();
    storage::Storage* storage = worker_ == nullptr ? nullptr : worker_->storage();
    if (storage != nullptr && args[0]->IsUint32()) database_ = storage->Find(args[0].As<v8::Uint32>()->Value());
    if (database_ == nullptr || database_->is_broken()) {
      database_ = nullptr;
      ThrowError(isolate_, kGone);
    } else {
      scope_.emplace(storage->account());
    }
  }

  bool ok() const { return database_ != nullptr; }
  Database& database() { return *database_; }
  Worker& worker() { return *worker_; }
  v8::Isolate* isolate() { return isolate_; }
  // Throws the last error of the database, unless V8 is ending the code anyway.
  void Throw() { ThrowError(isolate_, database_->error().empty() ? kGone : database_->error()); }

 private:
  v8::Isolate* const isolate_;
  Worker* worker_ = nullptr;
  Database* database_ = nullptr;
  std::optional<storage::AccountScope> scope_;
};

// --- Values ---

int Bind(v8::Isolate* isolate, sqlite3_stmt* statement, int index, v8::Local<v8::Value> value) {
  if (value->IsNumber()) {
    const double number = value.As<v8::Number>()->Value();
    return sqlite3_bind_double(statement, index, number);
  }
  if (value->IsString()) {
    if (IsBeyondMemory(isolate, value.As<v8::String>())) return SQLITE_TOOBIG;
    Utf8 text(isolate, value.As<v8::String>());
    if (!text.ok()) return SQLITE_NOMEM;
    return sqlite3_bind_text64(statement, index, text.view().data(), text.view().size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  const auto bind_bytes = [&](const void* data, size_t size) {
    if (size == 0) return sqlite3_bind_zeroblob(statement, index, 0);
    return sqlite3_bind_blob64(statement, index, data, size, SQLITE_TRANSIENT);
  };
  if (value->IsArrayBuffer()) {
    const v8::Local<v8::ArrayBuffer> buffer = value.As<v8::ArrayBuffer>();
    return bind_bytes(buffer->Data(), buffer->ByteLength());
  }
  if (value->IsArrayBufferView()) {
    const ReadableBytes view(value.As<v8::ArrayBufferView>());
    return bind_bytes(view.bytes().data(), view.bytes().size());
  }
  return sqlite3_bind_null(statement, index);
}

v8::MaybeLocal<v8::Value> ValueOf(v8::Isolate* isolate, sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return v8::Number::New(isolate, static_cast<double>(sqlite3_column_int64(statement, column)));
    case SQLITE_FLOAT:
      return v8::Number::New(isolate, sqlite3_column_double(statement, column));
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      v8::Local<v8::String> string;
      if (!v8::String::NewFromUtf8(isolate, text == nullptr ? "" : text, v8::NewStringType::kNormal,
                                   sqlite3_column_bytes(statement, column))
               .ToLocal(&string)) {
        return {};
      }
      return string;
    }
    case SQLITE_BLOB: {
      const void* data = sqlite3_column_blob(statement, column);
      const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
      v8::Local<v8::ArrayBuffer> buffer;
      if (!v8::ArrayBuffer::MaybeNew(isolate, size).ToLocal(&buffer)) {
        ThrowRangeError(isolate, "Array buffer allocation failed");
        return {};
      }
      if (size > 0) std::memcpy(buffer->Data(), data, size);
      return buffer;
    }
    default:
      return v8::Null(isolate);
  }
}

v8::MaybeLocal<v8::Array> RowOf(v8::Isolate* isolate, sqlite3_stmt* statement) {
  constexpr int kMost = 2000;  // columns: more than SQLite allows here
  const int count = std::min(sqlite3_data_count(statement), kMost);
  v8::LocalVector<v8::Value> values(isolate);
  values.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; i++) {
    v8::Local<v8::Value> value;
    if (!ValueOf(isolate, statement, i).ToLocal(&value)) return {};
    values.push_back(value);
  }
  return v8::Array::New(isolate, values.data(), values.size());
}

v8::Local<v8::Array> NamesOf(v8::Isolate* isolate, storage::Statement& statement) {
  const int compiled = sqlite3_stmt_status(statement.handle, SQLITE_STMTSTATUS_REPREPARE, 0);
  if (statement.names_of == compiled) return statement.names.Get(isolate);
  v8::LocalVector<v8::Value> names(isolate);
  const int count = sqlite3_column_count(statement.handle);
  for (int i = 0; i < count; i++) {
    const char* name = sqlite3_column_name(statement.handle, i);
    v8::Local<v8::String> text;
    const auto kind = v8::NewStringType::kInternalized;
    if (!v8::String::NewFromUtf8(isolate, name == nullptr ? "" : name, kind).ToLocal(&text)) {
      text = v8::String::Empty(isolate);
    }
    names.push_back(text);
  }
  const v8::Local<v8::Array> array = v8::Array::New(isolate, names.data(), names.size());
  statement.names.Reset(isolate, array);
  statement.names_of = compiled;
  return array;
}

// --- Cursors ---

// Their places in the array by which JavaScript knows a cursor: [id or 0 at the end, rows read, rows written].
enum Place : uint32_t { kId, kRead, kWritten };

void Tell(v8::Isolate* isolate, v8::Local<v8::Object> holder, Place place, double value) {
  Ignore(holder->Set(isolate->GetCurrentContext(), place, v8::Number::New(isolate, value)));
}

void TellCounts(Target& target, v8::Local<v8::Object> holder, const Cursor& cursor) {
  Tell(target.isolate(), holder, kRead, static_cast<double>(Database::RowsRead(cursor)));
  Tell(target.isolate(), holder, kWritten, static_cast<double>(Database::RowsWritten(cursor)));
}

void OnLost(const v8::WeakCallbackInfo<Cursor>& info) {
  Cursor* cursor = info.GetParameter();
  cursor->holder.Reset();
  cursor->owner->Lost(cursor->id);
}

enum class Read { kMore, kAll, kThrew };

// Reads up to `most` rows.
Read ReadRows(Target& target, Cursor& cursor, v8::LocalVector<v8::Value>& rows, uint32_t most) {
  while (rows.size() < most) {
    const Step step = target.database().Next(cursor);
    if (step == Step::kDone) return Read::kAll;
    if (step == Step::kError) {
      target.Throw();
      return Read::kThrew;
    }
    v8::Local<v8::Array> row;
    if (!RowOf(target.isolate(), cursor.statement->handle).ToLocal(&row)) return Read::kThrew;
    rows.push_back(row);
    if (rows.size() % kLookEvery == 0 && target.worker().IsEnding()) return Read::kThrew;
  }
  return Read::kMore;
}

// Null if something was thrown.
std::unique_ptr<Cursor> PrepareAndBind(Target& target, std::string_view sql, v8::Local<v8::Array> binds,
                                       bool internal) {
  v8::Isolate* isolate = target.isolate();
  Database& database = target.database();
  std::unique_ptr<Cursor> cursor = database.Prepare(sql, internal);
  if (cursor == nullptr) {
    target.Throw();
    return nullptr;
  }
  sqlite3_stmt* handle = cursor->statement->handle;
  const uint32_t count = binds->Length();
  const bool fits = static_cast<uint32_t>(sqlite3_bind_parameter_count(handle)) == count;
  if (!fits) ThrowError(isolate, "Wrong number of parameter bindings for SQL query.");
  bool bound = fits;
  for (uint32_t i = 0; i < count && bound; i++) {
    v8::Local<v8::Value> value;
    bound = binds->Get(isolate->GetCurrentContext(), i).ToLocal(&value);
    const int code = bound ? Bind(isolate, handle, static_cast<int>(i) + 1, value) : SQLITE_OK;
    if (code == SQLITE_OK) continue;
    bound = false;
    database.Fail(code);
    target.Throw();
  }
  if (!bound) {
    database.Finish(std::move(cursor));
    return nullptr;
  }
  return cursor;
}

// sqlExec(slot, sql, binds, internal) -> [holder, column names, rows]. A statement that writes is run to its end; of
// another one the first row is read.
void SqlExec(const Arguments& args) {
  Target target(args);
  if (!target.ok()) return;
  v8::Isolate* isolate = target.isolate();
  if (!args[1]->IsString() || !args[2]->IsArray())
    return ThrowTypeError(isolate, "sqlExec takes a string and an array");
  if (args[1].As<v8::String>()->Length() > kMostSql) return ThrowError(isolate, "statement too long: SQLITE_TOOBIG");
  Utf8 sql(isolate, args[1].As<v8::String>());
  std::unique_ptr<Cursor> cursor =
      sql.ok() ? PrepareAndBind(target, sql.view(), args[2].As<v8::Array>(), args[3]->IsTrue()) : nullptr;
  if (cursor == nullptr) return;
  Database& database = target.database();
  const bool reads = sqlite3_stmt_readonly(cursor->statement->handle) != 0;
  v8::LocalVector<v8::Value> rows(isolate);
  const Read read = ReadRows(target, *cursor, rows, reads ? 1 : UINT32_MAX);
  if (read == Read::kThrew) return database.Finish(std::move(cursor));
  // Only now: the first step may have compiled it anew, after a change of the schema.
  const v8::Local<v8::Array> names = NamesOf(isolate, *cursor->statement);
  v8::Local<v8::Value> state[] = {v8::Integer::New(isolate, 0),
                                  v8::Number::New(isolate, static_cast<double>(Database::RowsRead(*cursor))),
                                  v8::Number::New(isolate, static_cast<double>(Database::RowsWritten(*cursor)))};
  if (read == Read::kMore) cursor->id = database.NextCursor();
  state[kId] = v8::Integer::NewFromUnsigned(isolate, cursor->id);
  const v8::Local<v8::Array> holder = v8::Array::New(isolate, state, 3);
  if (read == Read::kMore) {
    cursor->owner = &database;
    cursor->holder.Reset(isolate, holder);
    cursor->holder.SetWeak(cursor.get(), OnLost, v8::WeakCallbackType::kParameter);
    database.Keep(std::move(cursor));
  } else {
    database.Finish(std::move(cursor));
  }
  v8::Local<v8::Value> result[] = {holder, names, v8::Array::New(isolate, rows.data(), rows.size())};
  args.GetReturnValue().Set(v8::Array::New(isolate, result, 3));
}

// sqlRows(slot, holder, most) -> rows; fewer than `most` if there are no more
void SqlRows(const Arguments& args) {
  Target target(args);
  if (!target.ok()) return;
  v8::Isolate* isolate = target.isolate();
  if (!args[1]->IsArray() || !args[2]->IsUint32())
    return ThrowTypeError(isolate, "sqlRows takes a holder and a number");
  const v8::Local<v8::Array> holder = args[1].As<v8::Array>();
  v8::Local<v8::Value> id;
  if (!holder->Get(isolate->GetCurrentContext(), kId).ToLocal(&id)) return;
  v8::LocalVector<v8::Value> rows(isolate);
  Cursor* cursor = id->IsUint32() ? target.database().Find(id.As<v8::Uint32>()->Value()) : nullptr;
  if (cursor == nullptr) return ThrowError(isolate, "SQL cursor was closed because deleteAll() was called.");
  const Read read = ReadRows(target, *cursor, rows, args[2].As<v8::Uint32>()->Value());
  TellCounts(target, holder, *cursor);
  if (read != Read::kMore) {
    Tell(isolate, holder, kId, 0);
    target.database().Finish(target.database().Take(cursor->id));
  }
  if (read != Read::kThrew) args.GetReturnValue().Set(v8::Array::New(isolate, rows.data(), rows.size()));
}

// databaseSize(slot) -> bytes in use
void DatabaseSize(const Arguments& args) {
  Target target(args);
  if (!target.ok()) return;
  const int64_t pages = target.database().Ask("PRAGMA page_count");
  const int64_t unused = target.database().Ask("PRAGMA freelist_count");
  if (pages < 0 || unused < 0) return target.Throw();
  args.GetReturnValue().Set(static_cast<double>(pages - unused) * static_cast<double>(storage::kPage));
}

// --- Transactions ---

// beginInner(slot, holds)
void BeginInner(const Arguments& args) {
  Target target(args);
  if (target.ok() && !target.database().BeginInner(args[1]->IsTrue())) target.Throw();
}

// endInner(slot, holds, keep): `keep` is false to roll back
void EndInner(const Arguments& args) {
  // A broken database cannot commit, and says so in other words than all else.
  v8::Isolate* isolate = args.GetIsolate();
  void* realm = isolate->GetData(0);
  Worker* worker = realm == nullptr ? nullptr : static_cast<Realm*>(realm)->worker();
  storage::Storage* storage = worker == nullptr ? nullptr : worker->storage();
  Database* database =
      storage != nullptr && args[0]->IsUint32() ? storage->Find(args[0].As<v8::Uint32>()->Value()) : nullptr;
  if (database == nullptr) return ThrowError(isolate, kGone);
  const storage::AccountScope scope(storage->account());
  const bool keep = args[2]->IsTrue();
  if (!database->EndInner(args[1]->IsTrue(), keep) && (keep || !database->is_broken())) {
    ThrowError(isolate, keep && database->is_broken() ? kEarlierError : database->error());
  }
}

// eraseAll(slot)
void EraseAll(const Arguments& args) {
  Target target(args);
  if (target.ok() && !target.database().EraseAll()) target.Throw();
}

// getAlarm(slot) -> ms or -1
void GetAlarm(const Arguments& args) {
  Target target(args);
  if (target.ok()) args.GetReturnValue().Set(static_cast<double>(target.database().alarm_ms()));
}

// setAlarm(slot, ms or -1)
void SetAlarm(const Arguments& args) {
  Target target(args);
  if (!target.ok()) return;
  constexpr double kLast = 8.64e15;  // of a Date
  const double ms = args[1]->IsNumber() ? args[1].As<v8::Number>()->Value() : -1;
  if (!target.database().SetAlarm(ms >= 0 && ms <= kLast ? static_cast<int64_t>(ms) : -1)) target.Throw();
}

// takeAlarm(slot): it is being delivered
void TakeAlarm(const Arguments& args) {
  Target target(args);
  if (target.ok()) target.database().TakeAlarm();
}

// syncStorage(slot) -> a promise; undefined if everything is durable
void SyncStorage(const Arguments& args) {
  Target target(args);
  v8::Local<v8::Promise> promise;
  if (target.ok() && target.worker().SyncStorage(args[0].As<v8::Uint32>()->Value()).ToLocal(&promise)) {
    args.GetReturnValue().Set(promise);
  }
}

// resetStorage(slot, code, message, name)
void ResetStorage(const Arguments& args) {
  Target target(args);
  if (!target.ok() || !args[1]->IsUint32()) return;
  Failure failure;
  failure.code = static_cast<wire::Error>(args[1].As<v8::Uint32>()->Value());
  if (args[2]->IsString()) failure.message = BeginningOf(target.isolate(), args[2].As<v8::String>(), kMostReason);
  if (args[3]->IsString()) failure.name = BeginningOf(target.isolate(), args[3].As<v8::String>(), kMostReason);
  target.worker().ResetStorage(args[0].As<v8::Uint32>()->Value(), failure);
}

constexpr Function kFunctions[] = {
    {"sqlExec", SqlExec},     {"sqlRows", SqlRows},         {"databaseSize", DatabaseSize}, {"beginInner", BeginInner},
    {"endInner", EndInner},   {"eraseAll", EraseAll},       {"getAlarm", GetAlarm},         {"setAlarm", SetAlarm},
    {"takeAlarm", TakeAlarm}, {"syncStorage", SyncStorage}, {"resetStorage", ResetStorage},
};

}  // namespace

std::span<const Function> StorageFunctions() { return kFunctions; }

}  // namespace engine::native
