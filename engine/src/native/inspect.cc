// What a log line shows of a value and JavaScript cannot find out by itself.

#include "arguments.h"
#include "native.h"

namespace engine::native {

namespace {

// isProxy(value) -> boolean: looking into a proxy would run its traps.
void IsProxy(const Arguments& args) { args.GetReturnValue().Set(args.Length() > 0 && args[0]->IsProxy()); }

// promiseState(promise) -> [state, result]: 0 pending, 1 fulfilled, 2 rejected.
void PromiseState(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsPromise()) return ThrowTypeError(isolate, "promiseState takes a promise");
  const v8::Local<v8::Promise> promise = args[0].As<v8::Promise>();
  const v8::Promise::PromiseState state = promise->State();
  const bool pending = state == v8::Promise::kPending;
  v8::Local<v8::Value> pair[] = {v8::Integer::New(isolate, state),
                                 pending ? v8::Undefined(isolate).As<v8::Value>() : promise->Result()};
  args.GetReturnValue().Set(v8::Array::New(isolate, pair, 2));
}

constexpr Function kFunctions[] = {{"isProxy", IsProxy}, {"promiseState", PromiseState}};

}  // namespace

std::span<const Function> InspectFunctions() { return kFunctions; }

}  // namespace engine::native
