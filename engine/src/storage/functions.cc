#include "storage/functions.h"

#include <string.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <string_view>

namespace engine::storage {
namespace {

using Context = sqlite3_context;
using Value = sqlite3_value;

bool IsNull(Value* value) { return sqlite3_value_type(value) == SQLITE_NULL; }

std::string_view TextOf(Value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_value_bytes(value))};
}

std::string_view BlobOf(Value* value) {
  const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_value_bytes(value))};
}

// Linear, unlike std::string_view::find().
const char* Search(std::string_view text, std::string_view wanted) {
  if (text.size() < wanted.size()) return nullptr;
  return static_cast<const char*>(memmem(text.data(), text.size(), wanted.data(), wanted.size()));
}

bool IsInside(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }  // of a character in UTF-8

// instr(text, wanted) -> its first position, counted from 1; 0: it does not occur
void Instr(Context* context, int, Value** args) {
  if (IsNull(args[0]) || IsNull(args[1])) return;
  const bool are_blobs = sqlite3_value_type(args[0]) == SQLITE_BLOB && sqlite3_value_type(args[1]) == SQLITE_BLOB;
  const std::string_view text = are_blobs ? BlobOf(args[0]) : TextOf(args[0]);
  const std::string_view wanted = are_blobs ? BlobOf(args[1]) : TextOf(args[1]);
  if (wanted.empty()) return sqlite3_result_int(context, 1);
  const char* found = Search(text, wanted);
  if (found == nullptr) return sqlite3_result_int(context, 0);
  const auto before = found - text.data();
  const auto inside = are_blobs ? 0 : std::count_if(text.data(), found, IsInside);
  sqlite3_result_int64(context, before - inside + 1);
}

// replace(text, wanted, by)
void Replace(Context* context, int, Value** args) {
  if (IsNull(args[0]) || IsNull(args[1]) || IsNull(args[2])) return;
  std::string_view text = TextOf(args[0]);
  const std::string_view wanted = TextOf(args[1]);
  if (wanted.empty()) return sqlite3_result_value(context, args[0]);
  const std::string_view by = TextOf(args[2]);
  size_t count = 0;
  for (std::string_view rest = text; const char* found = Search(rest, wanted); count++) {
    rest.remove_prefix(static_cast<size_t>(found - rest.data()) + wanted.size());
  }
  const uint64_t size = text.size() - count * wanted.size() + uint64_t{count} * by.size();
  const int most = sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1);
  if (size > static_cast<uint64_t>(most)) return sqlite3_result_error_toobig(context);
  auto* result = static_cast<char*>(sqlite3_malloc64(size + 1));
  if (result == nullptr) return sqlite3_result_error_nomem(context);
  char* end = result;
  const auto append = [&end](std::string_view part) { end = std::copy(part.begin(), part.end(), end); };
  while (const char* found = Search(text, wanted)) {
    const auto before = static_cast<size_t>(found - text.data());
    append(text.substr(0, before));
    append(by);
    text.remove_prefix(before + wanted.size());
  }
  append(text);
  sqlite3_result_text64(context, result, size, sqlite3_free, SQLITE_UTF8);
}

// A set of characters.
class Characters final {
 public:
  explicit Characters(std::string_view text)
      : wide_(static_cast<uint64_t*>(sqlite3_malloc64(text.size() * sizeof(uint64_t) + 8))) {
    while (!text.empty()) {
      const std::string_view character = text.substr(0, FirstSize(text));
      text.remove_prefix(character.size());
      if (character.size() == 1) {
        narrow_.set(static_cast<uint8_t>(character[0]));
      } else if (wide_ != nullptr) {
        wide_[count_++] = NumberOf(character);
      }
    }
    if (wide_ != nullptr) std::sort(wide_, wide_ + count_);
  }
  ~Characters() { sqlite3_free(wide_); }
  Characters(const Characters&) = delete;
  Characters& operator=(const Characters&) = delete;

  bool ok() const { return wide_ != nullptr; }
  bool Has(std::string_view character) const {
    if (character.size() == 1) return narrow_.test(static_cast<uint8_t>(character[0]));
    return std::binary_search(wide_, wide_ + count_, NumberOf(character));
  }
  static size_t FirstSize(std::string_view text) {
    size_t size = 1;
    if (static_cast<uint8_t>(text[0]) < 0xc0) return size;
    while (size < text.size() && size < sizeof(uint64_t) && IsInside(text[size])) size++;
    return size;
  }
  static size_t LastSize(std::string_view text) {
    size_t size = 1;
    while (size < text.size() && size < sizeof(uint64_t) && IsInside(text[text.size() - size])) size++;
    return FirstSize(text.substr(text.size() - size)) == size ? size : 1;
  }

 private:
  static uint64_t NumberOf(std::string_view character) {
    uint64_t number = 0;
    for (const char byte : character) number = number << 8 | static_cast<uint8_t>(byte);
    return number;
  }

  std::bitset<256> narrow_;
  uint64_t* const wide_;
  size_t count_ = 0;
};

enum Side : uintptr_t { kLeft = 1, kRight = 2 };

// trim(text[, characters])
void Trim(Context* context, int count, Value** args) {
  if (IsNull(args[0]) || (count == 2 && IsNull(args[1]))) return;
  std::string_view text = TextOf(args[0]);
  const Characters characters(count == 2 ? TextOf(args[1]) : " ");
  if (!characters.ok()) return sqlite3_result_error_nomem(context);
  const auto sides = reinterpret_cast<uintptr_t>(sqlite3_user_data(context));
  while ((sides & kLeft) != 0 && !text.empty()) {
    const size_t size = Characters::FirstSize(text);
    if (!characters.Has(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while ((sides & kRight) != 0 && !text.empty()) {
    const size_t size = Characters::LastSize(text);
    if (!characters.Has(text.substr(text.size() - size))) break;
    text.remove_suffix(size);
  }
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

int DigitOf(char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  const char lower = static_cast<char>(byte | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// unhex(digits, ignored) -> bytes; null if there is another character than digits, or an ignored one within a byte
void Unhex(Context* context, int, Value** args) {
  if (IsNull(args[0]) || IsNull(args[1])) return;
  std::string_view text = TextOf(args[0]);
  const Characters ignored(TextOf(args[1]));
  auto* const result = static_cast<char*>(sqlite3_malloc64(text.size() / 2 + 1));
  if (!ignored.ok() || result == nullptr) {
    sqlite3_free(result);
    return sqlite3_result_error_nomem(context);
  }
  char* end = result;
  while (!text.empty()) {
    const int high = DigitOf(text[0]);
    const int low = high < 0 || text.size() < 2 ? -1 : DigitOf(text[1]);
    const size_t size = high < 0 ? Characters::FirstSize(text) : 2;
    if (low >= 0) *end++ = static_cast<char>(high << 4 | low);
    if (high >= 0 ? low < 0 : !ignored.Has(text.substr(0, size))) return sqlite3_free(result);
    text.remove_prefix(size);
  }
  sqlite3_result_blob64(context, result, static_cast<uint64_t>(end - result), sqlite3_free);
}

}  // namespace

int AddFunctions(sqlite3* connection) {
  struct Added {
    const char* name;
    int arguments;
    uintptr_t data;
    void (*function)(Context*, int, Value**);
  };
  constexpr Added kAdded[] = {
      {"instr", 2, 0, Instr},
      {"replace", 3, 0, Replace},
      {"unhex", 2, 0, Unhex},
      {"trim", 1, kLeft | kRight, Trim},
      {"trim", 2, kLeft | kRight, Trim},
      {"ltrim", 1, kLeft, Trim},
      {"ltrim", 2, kLeft, Trim},
      {"rtrim", 1, kRight, Trim},
      {"rtrim", 2, kRight, Trim},
  };
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  for (const Added& each : kAdded) {
    const int code =
        sqlite3_create_function_v2(connection, each.name, each.arguments, kFlags, reinterpret_cast<void*>(each.data),
                                   each.function, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

}  // namespace engine::storage
