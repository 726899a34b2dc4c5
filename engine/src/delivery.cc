// What a worker does with mail of a call: start it, feed it, cancel it.
// (Another part of class Worker; its turns are in worker.cc, its start in startup.cc.)
#include <cstring>

#include "engine.h"
#include "worker.h"

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

void Worker::BeginCall(const Mail& mail) {
  std::optional<wire::CallParts> parts = wire::ParseCall(mail.payload);
  Call* call = parts ? calls_.Begin(mail.call) : nullptr;
  if (call == nullptr) {
    Refuse(mail);
    return;
  }
  engine_.ledger().Begun(mail.call);
  v8::Isolate* isolate = realm_->isolate();
  bool streaming = (mail.flags & wire::kFlagEnd) == 0;
  call->upload_open = streaming;
  v8::Local<v8::Value> body = v8::Null(isolate);
  if (!parts->body.empty()) body = Bytes(isolate, parts->body);
  CallEntry(realm_->entry().fetch, {v8::Integer::NewFromUnsigned(isolate, mail.call), Latin1(isolate, parts->head),
                                    body, v8::Boolean::New(isolate, streaming)});
}

void Worker::DeliverBody(const Mail& mail) {
  Call* call = calls_.Find(mail.call);
  if (call == nullptr || !call->upload_open) return;
  v8::Isolate* isolate = realm_->isolate();
  v8::Local<v8::Value> id = v8::Integer::NewFromUnsigned(isolate, mail.call);
  call->waits_body = false;
  bool last = mail.flags & wire::kFlagEnd;
  if (last) call->upload_open = false;
  if (!mail.payload.empty()) CallEntry(realm_->entry().body, {id, Bytes(isolate, mail.payload)});
  if (last) CallEntry(realm_->entry().body, {id, v8::Null(isolate)});
}

void Worker::DeliverReply(const Mail& mail) {
  uint32_t op = mail.call;
  if (Call* call = calls_.Find(ops_[op])) call->ops--;
  ops_.erase(op);
  std::optional<wire::MetaParts> parts = wire::ParseMeta(mail.payload);
  v8::Isolate* isolate = realm_->isolate();
  CallEntry(realm_->entry().reply,
            {v8::Integer::NewFromUnsigned(isolate, op), v8::Boolean::New(isolate, mail.flags & wire::kFlagFail),
             ToV8(isolate, parts ? parts->meta : std::string_view("{}")),
             Bytes(isolate, parts ? parts->body : std::string_view())});
}

void Worker::Cancel(const Mail& mail) {
  Call* call = calls_.Find(mail.call);
  bool time_is_up = mail.flags & wire::kFlagFail;
  if (call == nullptr || (call->canceled && !time_is_up)) return;
  call->canceled = true;
  call->waits_credit = call->waits_body = false;
  call->upload_open = call->body_open = call->piped = false;
  call->outcome = time_is_up ? wire::Outcome::kExceededWallTime : wire::Outcome::kCanceled;
  v8::Isolate* isolate = realm_->isolate();
  CallEntry(realm_->entry().cancel,
            {v8::Integer::NewFromUnsigned(isolate, mail.call), v8::Boolean::New(isolate, time_is_up)});
}

}  // namespace engine
