#include "worker/web_entry.h"

#include <cstring>
#include <optional>

#include "isolate/errors.h"

namespace engine {
namespace {

v8::Local<v8::Value> Bytes(v8::Isolate* isolate, std::string_view bytes) {
  v8::Local<v8::ArrayBuffer> buffer;
  auto uninitialized = v8::BackingStoreInitializationMode::kUninitialized;
  if (!v8::ArrayBuffer::MaybeNew(isolate, bytes.size(), uninitialized).ToLocal(&buffer)) return v8::Null(isolate);
  if (!bytes.empty()) std::memcpy(buffer->Data(), bytes.data(), bytes.size());
  return v8::Uint8Array::New(buffer, 0, bytes.size());
}

v8::Local<v8::Value> Latin1(v8::Isolate* isolate, std::string_view bytes) {
  return v8::String::NewFromOneByte(isolate, reinterpret_cast<const uint8_t*>(bytes.data()), v8::NewStringType::kNormal,
                                    static_cast<int>(bytes.size()))
      .FromMaybe(v8::String::Empty(isolate));
}

}  // namespace

void WebEntry::Begin(uint32_t serial, const wire::CallParts& parts, bool streaming) {
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Value> body = v8::Null(isolate);
  if (!parts.body.empty()) body = Bytes(isolate, parts.body);
  if (parts.event == wire::Event::kFetch) {
    Enter(realm_.entry().fetch, {Number(serial), Latin1(isolate, parts.head), body, Bool(streaming)});
  } else {
    Enter(realm_.entry().event, {Number(serial), Number(static_cast<uint32_t>(parts.event)),
                                 Latin1(isolate, parts.head), body, Bool(streaming)});
  }
}

void WebEntry::Body(uint32_t serial, std::string_view bytes, bool last) {
  Call* call = calls_.Find(serial);
  if (call == nullptr || !call->upload_open) return;
  call->waits_body = false;
  call->untaken += static_cast<uint32_t>(bytes.size());
  if (last) call->upload_open = false;
  v8::Isolate* isolate = realm_.isolate();
  if (!bytes.empty()) Enter(realm_.entry().body, {Number(serial), Bytes(isolate, bytes)});
  if (last) Enter(realm_.entry().body, {Number(serial), v8::Null(isolate)});
}

void WebEntry::PipedBodyEnd(uint32_t serial) {
  Enter(realm_.entry().body, {Number(serial), v8::Null(realm_.isolate())});
}

void WebEntry::Credit(uint32_t serial) { Enter(realm_.entry().credit, {Number(serial)}); }

void WebEntry::Cancel(uint32_t serial, bool time_is_up) {
  Call* call = calls_.Find(serial);
  if (call == nullptr || (call->canceled && !time_is_up)) return;
  call->canceled = true;
  call->waits_credit = call->waits_body = false;
  call->upload_open = call->body_open = call->piped = false;
  call->outcome = time_is_up ? wire::Outcome::kExceededWallTime : wire::Outcome::kCanceled;
  Enter(realm_.entry().cancel, {Number(serial), Bool(time_is_up)});
}

void WebEntry::Reply(uint32_t op, bool failed, std::string_view payload) {
  std::optional<wire::MetaParts> parts = wire::ParseMeta(payload);
  v8::Isolate* isolate = realm_.isolate();
  v8::Local<v8::Value> body = v8::Null(isolate);
  if (parts) body = Bytes(isolate, parts->body);
  Enter(realm_.entry().reply,
        {Number(op), Bool(failed), ToV8(isolate, parts ? parts->meta : std::string_view("{}")), body});
}

void WebEntry::InnerReply(uint32_t op, bool failed, std::string_view payload) {
  v8::Isolate* isolate = realm_.isolate();
  wire::Reader reader(payload);
  const uint32_t status = reader.U16();
  const std::string_view head = reader.Bytes(reader.U32());
  const std::string_view body = reader.Rest();
  // An empty payload as for Reply().
  const v8::Local<v8::Value> bytes = reader.ok() ? Bytes(isolate, body) : v8::Null(isolate).As<v8::Value>();
  Enter(realm_.entry().reply, {Number(op), Bool(failed), Number(status), bytes, Latin1(isolate, head)});
}

void WebEntry::ForgetReply(uint32_t op) { Enter(realm_.entry().reply, {Number(op), v8::Null(realm_.isolate())}); }

void WebEntry::Timer(uint32_t id) { Enter(realm_.entry().timer, {Number(id)}); }

void WebEntry::Sockets(uint32_t slot, std::string_view payload) {
  Enter(realm_.entry().sockets, {Number(slot), Bytes(realm_.isolate(), payload)});
}

void WebEntry::Finalize() { Enter(realm_.entry().finalize, {}); }

void WebEntry::Enter(const v8::Global<v8::Function>& function, std::initializer_list<v8::Local<v8::Value>> arguments) {
  v8::Isolate* isolate = realm_.isolate();
  v8::TryCatch caught(isolate);
  v8::Local<v8::Value> values[8];
  size_t count = 0;
  for (v8::Local<v8::Value> value : arguments) values[count++] = value;
  Ignore(function.Get(isolate)->Call(isolate->GetCurrentContext(), v8::Undefined(isolate), static_cast<int>(count),
                                     values));
  if (caught.HasCaught() && !caught.HasTerminated()) {
    Failure failure = Describe(isolate->GetCurrentContext(), wire::Error::kInternal, caught);
    calls_.Log(0, wire::Level::kError, realm_.now_ms(),
               "internal error: " + (failure.stack.empty() ? failure.message : failure.stack));
  }
}

}  // namespace engine
