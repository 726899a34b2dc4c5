#include "isolate/errors.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "isolate/realm.h"
#include "isolate/stacks.h"

namespace engine {
namespace {

constexpr size_t kMaxText = 8 * 1024;
constexpr size_t kMaxStack = 32 * 1024;

// Cuts between characters, so that the text stays valid UTF-8.
std::string Cut(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) limit--;
  text.resize(limit);
  return text;
}

std::string Field(v8::Local<v8::Context> context, v8::Local<v8::Object> object, const char* name) {
  v8::Isolate* isolate = context->GetIsolate();
  v8::TryCatch ignored(isolate);
  v8::Local<v8::Value> value;
  if (!object->Get(context, ToV8(isolate, name)).ToLocal(&value) || !value->IsString()) return {};
  return BeginningOf(isolate, value.As<v8::String>(), kMaxStack + 1024);
}

void Locate(v8::Local<v8::Context> context, v8::Local<v8::Message> message, Failure* failure) {
  if (message.IsEmpty()) return;
  std::string file = FromV8(context->GetIsolate(), message->GetScriptResourceName());
  if (file == "undefined" || file.starts_with(kPlatformScript)) return;
  failure->file = file;
  failure->line = static_cast<uint32_t>(message->GetLineNumber(context).FromMaybe(0));
  failure->column = static_cast<uint32_t>(message->GetStartColumn(context).FromMaybe(-1) + 1);
}

// "…(file:12:5)" or "at file:12:5" at the end of a line of a stack trace.
bool ParsePosition(std::string_view line, Failure* failure) {
  if (line.ends_with(')')) line.remove_suffix(1);
  uint32_t numbers[2];
  for (int i = 1; i >= 0; i--) {
    size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) return false;
    std::string_view digits = line.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), numbers[i]);
    if (error != std::errc() || end != digits.data() + digits.size()) return false;
    line = line.substr(0, colon);
  }
  size_t start = line.find_last_of(" (");
  failure->file = line.substr(start == std::string_view::npos ? 0 : start + 1);
  failure->line = numbers[0];
  failure->column = numbers[1];
  return true;
}

// Finds the position in the first frame of a stack, which has no frames of the web platform (isolate/stacks.h).
void LocateInStack(Failure* failure) {
  std::string_view rest = failure->stack;
  while (!rest.empty() && failure->file.empty()) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (line.starts_with("    at ")) ParsePosition(line, failure);
  }
}

}  // namespace

std::string Failure::Json() const {
  JsonObject json;
  json.Number("code", static_cast<uint32_t>(code)).Text("message", Cut(message, kMaxText));
  if (!name.empty()) json.Text("name", Cut(name, 256));
  if (!stack.empty()) json.Text("stack", Cut(stack, kMaxStack));
  if (!file.empty()) json.Text("file", Cut(file, 512)).Number("line", line).Number("column", column);
  if (cpu_us > 0) json.Number("cpu_us", cpu_us);
  return json.Done();
}

Failure Describe(v8::Local<v8::Context> context, wire::Error code, v8::Local<v8::Value> thrown) {
  v8::Isolate* isolate = context->GetIsolate();
  Failure failure;
  failure.code = code;
  if (thrown.IsEmpty()) {
    failure.message = "unknown error";
    return failure;
  }
  if (thrown->IsObject()) {
    v8::Local<v8::Object> object = thrown.As<v8::Object>();
    failure.name = Field(context, object, "name");
    failure.message = Field(context, object, "message");
    failure.stack = Field(context, object, "stack");
    if (thrown->IsNativeError()) LocateInStack(&failure);
  }
  if (failure.message.empty()) {
    v8::TryCatch ignored(isolate);
    v8::Local<v8::String> text;
    // A symbol does not convert to a string, and the conversion of an object may throw.
    if (thrown->ToString(context).ToLocal(&text) || thrown->ToDetailString(context).ToLocal(&text)) {
      failure.message = BeginningOf(isolate, text, kMaxText + 1024);
    }
  }
  return failure;
}

Failure TooMuchMemory(size_t limit_bytes) {
  std::string limit = std::to_string(limit_bytes >> 20);
  return {wire::Error::kMemory, "the worker used more than its memory limit of " + limit + " MB", {}, {}, {}, 0, 0};
}

void NameMemoryLimit(Failure* failure, size_t limit_bytes) {
  constexpr std::string_view kRefused[] = {
      "Array buffer allocation failed",
      "WebAssembly.Memory(): could not allocate memory",
      "WebAssembly.Memory.grow(): Unable to grow instance memory",
  };
  if (failure->name != "RangeError" || std::ranges::find(kRefused, failure->message) == std::end(kRefused)) return;
  failure->code = wire::Error::kMemory;
  failure->message = "the worker needed more than its memory limit of " + std::to_string(limit_bytes >> 20) +
                     " MB: " + failure->message;
}

Failure TooMuchCpu(uint64_t used_ns, uint64_t limit_ns) {
  // The used time is rounded up: "used 50 ms, limit 50 ms" would look wrong.
  std::string used = std::to_string((used_ns + 999'999) / 1'000'000);
  std::string limit = std::to_string(limit_ns / 1'000'000);
  return {wire::Error::kCpu, "used " + used + " ms of CPU, limit " + limit + " ms", {}, {}, {}, 0, 0};
}

Failure Describe(v8::Local<v8::Context> context, wire::Error code, const v8::TryCatch& caught) {
  Failure failure = Describe(context, code, caught.Exception());
  Locate(context, caught.Message(), &failure);
  return failure;
}

}  // namespace engine
