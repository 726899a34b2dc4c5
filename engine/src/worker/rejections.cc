#include "worker/rejections.h"

#include <utility>

#include "isolate/errors.h"

namespace engine {
namespace {

// Listeners may reject promises in turn. After this many rounds the rest waits for the next turn.
constexpr int kRounds = 8;

}  // namespace

void Rejections::Add(v8::Isolate* isolate, const v8::PromiseRejectMessage& message, uint32_t call) {
  if (message.GetEvent() == v8::kPromiseRejectWithNoHandler) {
    rejections_.push_back({v8::Global<v8::Promise>(isolate, message.GetPromise()), call, false});
  } else if (message.GetEvent() == v8::kPromiseHandlerAddedAfterReject) {
    for (size_t i = 0; i < rejections_.size(); i++) {
      if (rejections_[i].promise != message.GetPromise()) continue;
      rejections_.erase(rejections_.begin() + static_cast<ptrdiff_t>(i));
      return;
    }
    rejections_.push_back({v8::Global<v8::Promise>(isolate, message.GetPromise()), call, true});
  }
}

void Rejections::Report(Realm& realm, const std::function<bool()>& is_ending, const Log& log) {
  for (int round = 0; round < kRounds && !rejections_.empty(); round++) {
    for (const Rejection& rejection : std::exchange(rejections_, {})) {
      if (!ReportOne(realm, rejection, is_ending, log)) return;
    }
    realm.isolate()->PerformMicrotaskCheckpoint();
  }
}

bool Rejections::ReportOne(Realm& realm, const Rejection& rejection, const std::function<bool()>& is_ending,
                           const Log& log) {
  v8::Isolate* isolate = realm.isolate();
  v8::Local<v8::Context> context = isolate->GetCurrentContext();
  v8::HandleScope handles(isolate);
  v8::Local<v8::Value> reason = rejection.promise.Get(isolate)->Result();
  isolate->SetContinuationPreservedEmbedderData(v8::Integer::NewFromUnsigned(isolate, rejection.call));
  v8::Local<v8::Value> arguments[] = {rejection.promise.Get(isolate), reason,
                                      v8::Boolean::New(isolate, rejection.handled)};
  v8::Local<v8::Value> unhandled;
  v8::TryCatch caught(isolate);
  v8::Local<v8::Function> notify = realm.entry().rejection.Get(isolate);
  if (!notify->Call(context, v8::Undefined(isolate), 3, arguments).ToLocal(&unhandled)) {
    if (caught.HasTerminated()) {
      caught.ReThrow();
      return false;
    }
    unhandled = v8::Boolean::New(isolate, !rejection.handled);
  }
  if (!unhandled->IsTrue()) return true;
  if (is_ending()) return false;  // reading the text of an error may run code that never ends
  Failure failure = Describe(context, wire::Error::kException, reason);
  log(rejection.call, "Uncaught (in promise) " + (failure.stack.empty() ? failure.message : failure.stack));
  return true;
}

}  // namespace engine
