// What only V8 knows about a value: its structured clone, whether it is a proxy, the state of a promise.
//
// Structured clone is within one realm, on V8's serializer.
// https://html.spec.whatwg.org/multipage/structured-data.html#structured-cloning
//
// Two things that V8 leaves to its embedder are done in JavaScript, by functions passed with each call: the error to
// throw (DOMException is written in JavaScript), and the clone of a platform object. The latter is called only for
// objects whose prototype is neither Object.prototype nor null, so plain data costs nothing extra.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "native/arguments.h"
#include "native/native.h"

namespace engine::native {

namespace {

// V8 writes a string once per mention, so a small value may serialize to far more than the isolate's memory limit. This
// is the limit; beyond it a DataCloneError is thrown.
constexpr size_t kMostBytes = size_t{256} << 20;

// The state of one call of structuredClone, shared by writer and reader.
struct Call {
  v8::Isolate* isolate;
  v8::Local<v8::Context> context;
  v8::Local<v8::Function> make_error;  // (message) -> error to throw
  v8::Local<v8::Function> clone_host;  // (object) -> its clone, or undefined if it is not a platform object
  v8::Local<v8::Object> object_prototype;
  std::vector<v8::CompiledWasmModule> modules;
  v8::Local<v8::Array> hosts;  // in JavaScript: handles made in a callback end with the serializer's scopes
  bool asks_bare = false;      // clone_host is also called for objects without a prototype

  void ThrowDataCloneError(v8::Local<v8::String> message) {
    v8::Local<v8::Value> argument = message;
    v8::Local<v8::Value> error;
    if (make_error->Call(context, v8::Undefined(isolate), 1, &argument).ToLocal(&error)) isolate->ThrowException(error);
  }
  void ThrowDataCloneError(const char* message) {
    v8::Local<v8::String> text;
    if (v8::String::NewFromUtf8(isolate, message).ToLocal(&text)) ThrowDataCloneError(text);
  }
};

class Writer final : public v8::ValueSerializer::Delegate {
 public:
  explicit Writer(Call& call) : serializer(call.isolate, this), call_(call) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void ThrowDataCloneError(v8::Local<v8::String> message) override { call_.ThrowDataCloneError(message); }

  bool HasCustomHostObject(v8::Isolate*) override { return true; }

  v8::Maybe<bool> IsHostObject(v8::Isolate*, v8::Local<v8::Object> object) override {
    const v8::Local<v8::Value> prototype = object->GetPrototypeV2();
    if (prototype->IsNull() ? !call_.asks_bare : prototype == call_.object_prototype) return v8::Just(false);
    v8::Local<v8::Value> argument = object;
    v8::Local<v8::Value> clone;
    if (!call_.clone_host->Call(call_.context, v8::Undefined(call_.isolate), 1, &argument).ToLocal(&clone)) {
      return v8::Nothing<bool>();
    }
    if (!clone->IsObject()) return v8::Just(false);
    if (call_.hosts->CreateDataProperty(call_.context, call_.hosts->Length(), clone).IsNothing()) {
      return v8::Nothing<bool>();
    }
    return v8::Just(true);
  }

  // Called right after IsHostObject has returned true.
  v8::Maybe<bool> WriteHostObject(v8::Isolate*, v8::Local<v8::Object>) override {
    if (call_.hosts->Length() == 0) {
      call_.ThrowDataCloneError("The object could not be cloned.");
      return v8::Nothing<bool>();
    }
    serializer.WriteUint32(call_.hosts->Length() - 1);
    return v8::Just(true);
  }

  v8::Maybe<uint32_t> GetSharedArrayBufferId(v8::Isolate*, v8::Local<v8::SharedArrayBuffer>) override {
    call_.ThrowDataCloneError("A SharedArrayBuffer could not be cloned.");
    return v8::Nothing<uint32_t>();
  }

  v8::Maybe<uint32_t> GetWasmModuleTransferId(v8::Isolate*, v8::Local<v8::WasmModuleObject> module) override {
    call_.modules.push_back(module->GetCompiledModule());
    return v8::Just(static_cast<uint32_t>(call_.modules.size() - 1));
  }

  void* ReallocateBufferMemory(void* old, size_t size, size_t* actual) override {
    if (size > kMostBytes) return nullptr;
    *actual = size;
    return std::realloc(old, size);
  }

  v8::ValueSerializer serializer;

 private:
  Call& call_;
};

class Reader final : public v8::ValueDeserializer::Delegate {
 public:
  Reader(Call& call, const uint8_t* data, size_t size) : deserializer(call.isolate, data, size, this), call_(call) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  v8::MaybeLocal<v8::Object> ReadHostObject(v8::Isolate*) override {
    uint32_t index = 0;
    v8::Local<v8::Value> clone;
    if (deserializer.ReadUint32(&index) && call_.hosts->Get(call_.context, index).ToLocal(&clone) &&
        clone->IsObject()) {
      return clone.As<v8::Object>();
    }
    call_.ThrowDataCloneError("The object could not be cloned.");
    return {};
  }

  v8::MaybeLocal<v8::WasmModuleObject> GetWasmModuleFromId(v8::Isolate* isolate, uint32_t id) override {
    if (id < call_.modules.size()) return v8::WasmModuleObject::FromCompiledModule(isolate, call_.modules[id]);
    return {};
  }

  v8::ValueDeserializer deserializer;

 private:
  Call& call_;
};

struct FreeBuffer {
  void operator()(uint8_t* buffer) const { std::free(buffer); }
};

// Reads the transfer list. False if reading it threw.
bool ReadTransfers(Call& call, v8::Local<v8::Array> list, std::vector<v8::Local<v8::ArrayBuffer>>& transfers) {
  for (uint32_t i = 0; i < list->Length(); ++i) {
    v8::Local<v8::Value> item;
    if (!list->Get(call.context, i).ToLocal(&item)) return false;
    if (!item->IsArrayBuffer()) {
      call.ThrowDataCloneError("A value in the transfer list is not transferable.");
      return false;
    }
    for (const v8::Local<v8::ArrayBuffer>& earlier : transfers) {
      if (earlier == item) {
        call.ThrowDataCloneError("The transfer list contains an ArrayBuffer twice.");
        return false;
      }
    }
    transfers.push_back(item.As<v8::ArrayBuffer>());
  }
  return true;
}

// Moves the content of each listed buffer into a new buffer for the reader. False if that threw.
bool Transfer(Call& call, const std::vector<v8::Local<v8::ArrayBuffer>>& transfers, Reader& reader) {
  for (const v8::Local<v8::ArrayBuffer>& buffer : transfers) {
    if (buffer->WasDetached() || !buffer->IsDetachable()) {
      call.ThrowDataCloneError("An ArrayBuffer in the transfer list is detached or cannot be detached.");
      return false;
    }
  }
  for (uint32_t id = 0; id < transfers.size(); ++id) {
    const std::shared_ptr<v8::BackingStore> content = transfers[id]->GetBackingStore();
    if (transfers[id]->Detach(v8::Local<v8::Value>()).IsNothing()) return false;
    reader.deserializer.TransferArrayBuffer(id, v8::ArrayBuffer::New(call.isolate, content));
  }
  return true;
}

// Whether serialized bytes may hold an error: its tag, then a letter for its class, then its message or its stack. Text
// may look the same, and then `restore` finds none.
bool MayHoldErrors(const uint8_t* data, size_t size) {
  const auto is_text = [](uint8_t tag) { return tag == '"' || tag == 'c'; };
  const uint8_t* const end = data + size;
  for (const uint8_t* at = data; (at = static_cast<const uint8_t*>(memchr(at, 'r', end - at))) != nullptr; ++at) {
    const uint8_t* next = at + 1;
    if (next < end && memchr("ERFSTU", *next, 6) != nullptr) ++next;
    if (end - next >= 2 && (*next == 'm' || *next == 's') && is_text(next[1])) return true;
  }
  return false;
}

// structuredClone(value, transfer, makeError, cloneHost, restore) -> value. `restore(value, clone)` is called if there
// may be errors in the value, unless it is undefined.
void StructuredClone(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 4 || !args[1]->IsArray() || !args[2]->IsFunction() || !args[3]->IsFunction()) {
    return ThrowTypeError(isolate, "structuredClone takes a value, an array and two functions");
  }
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  // The prototype of a fresh object is this realm's Object.prototype, even if the worker has changed its globals.
  const v8::Local<v8::Object> object_prototype = v8::Object::New(isolate)->GetPrototypeV2().As<v8::Object>();
  Call call{isolate,          context, args[2].As<v8::Function>(), args[3].As<v8::Function>(),
            object_prototype, {},      v8::Array::New(isolate)};

  std::vector<v8::Local<v8::ArrayBuffer>> transfers;
  if (!ReadTransfers(call, args[1].As<v8::Array>(), transfers)) return;

  Writer writer(call);
  for (uint32_t id = 0; id < transfers.size(); ++id) writer.serializer.TransferArrayBuffer(id, transfers[id]);
  writer.serializer.WriteHeader();
  const bool written = writer.serializer.WriteValue(context, args[0]).FromMaybe(false);
  const auto [data, size] = writer.serializer.Release();
  const std::unique_ptr<uint8_t, FreeBuffer> buffer(data);
  if (!written) return;

  Reader reader(call, data, size);
  if (!Transfer(call, transfers, reader)) return;
  v8::Local<v8::Value> result;
  if (reader.deserializer.ReadHeader(context).FromMaybe(false) &&
      reader.deserializer.ReadValue(context).ToLocal(&result)) {
    v8::Local<v8::Value> both[] = {args[0], result};
    if (args.Length() > 4 && args[4]->IsFunction() && MayHoldErrors(data, size) &&
        args[4].As<v8::Function>()->Call(context, v8::Undefined(isolate), 2, both).IsEmpty()) {
      return;
    }
    args.GetReturnValue().Set(result);
  }
}

// serialize(value, makeError, describeHost, asksBare) -> [bytes, hosts]: for another isolate. `hosts` are the results
// of describeHost for the platform objects, in the order in which deserialize needs them. With `asksBare` describeHost
// is also called for objects without a prototype.
void Serialize(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 3 || !args[1]->IsFunction() || !args[2]->IsFunction()) {
    return ThrowTypeError(isolate, "serialize takes a value and two functions");
  }
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  const v8::Local<v8::Object> object_prototype = v8::Object::New(isolate)->GetPrototypeV2().As<v8::Object>();
  Call call{isolate,          context, args[1].As<v8::Function>(), args[2].As<v8::Function>(),
            object_prototype, {},      v8::Array::New(isolate)};
  call.asks_bare = args.Length() > 3 && args[3]->IsTrue();
  Writer writer(call);
  writer.serializer.WriteHeader();
  const bool written = writer.serializer.WriteValue(context, args[0]).FromMaybe(false);
  const auto [data, size] = writer.serializer.Release();
  const std::unique_ptr<uint8_t, FreeBuffer> buffer(data);
  if (!written) return;
  if (!call.modules.empty()) return call.ThrowDataCloneError("A WebAssembly.Module cannot leave its worker.");
  v8::Local<v8::ArrayBuffer> bytes;
  if (!v8::ArrayBuffer::MaybeNew(isolate, size).ToLocal(&bytes)) return call.ThrowDataCloneError("Out of memory.");
  std::memcpy(bytes->Data(), data, size);
  v8::Local<v8::Value> pair[] = {v8::Uint8Array::New(bytes, 0, size), call.hosts};
  args.GetReturnValue().Set(v8::Array::New(isolate, pair, 2));
}

// deserialize(bytes, hosts, makeError) -> value. The bytes come from another isolate and may be forged:
// V8's reader tolerates that.
void Deserialize(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 3 || !args[0]->IsUint8Array() || !args[1]->IsArray() || !args[2]->IsFunction()) {
    return ThrowTypeError(isolate, "deserialize takes bytes, an array and a function");
  }
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  std::vector<uint8_t> bytes(args[0].As<v8::Uint8Array>()->ByteLength());
  args[0].As<v8::Uint8Array>()->CopyContents(bytes.data(), bytes.size());
  Call call{isolate, context, args[2].As<v8::Function>(), {}, {}, {}, args[1].As<v8::Array>()};
  Reader reader(call, bytes.data(), bytes.size());
  v8::Local<v8::Value> result;
  v8::TryCatch caught(isolate);
  if (reader.deserializer.ReadHeader(context).FromMaybe(false) &&
      reader.deserializer.ReadValue(context).ToLocal(&result)) {
    args.GetReturnValue().Set(result);
    return;
  }
  if (caught.HasTerminated()) return;
  caught.Reset();
  call.ThrowDataCloneError("The value could not be read.");
  caught.ReThrow();
}

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

// proxyTarget(proxy) -> its target, without running a trap; null when it is revoked
void ProxyTarget(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsProxy()) return ThrowTypeError(isolate, "proxyTarget takes a proxy");
  args.GetReturnValue().Set(args[0].As<v8::Proxy>()->GetTarget());
}

// proxyHandler(proxy) -> its handler; null when it is revoked
void ProxyHandler(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsProxy()) return ThrowTypeError(isolate, "proxyHandler takes a proxy");
  args.GetReturnValue().Set(args[0].As<v8::Proxy>()->GetHandler());
}

// previewEntries(iterator of a Map or Set) -> [items, whether they are pairs]; undefined for other objects
void PreviewEntries(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !(args[0]->IsMapIterator() || args[0]->IsSetIterator())) return;
  bool are_pairs = false;
  v8::Local<v8::Array> items;
  if (!args[0].As<v8::Object>()->PreviewEntries(&are_pairs).ToLocal(&items)) return;
  v8::Local<v8::Value> pair[] = {items, v8::Boolean::New(isolate, are_pairs)};
  args.GetReturnValue().Set(v8::Array::New(isolate, pair, 2));
}

// privateSymbol(name) -> a key for properties that nothing lists and no proxy sees.
void PrivateSymbol(const Arguments& args) {
  v8::Isolate* isolate = args.GetIsolate();
  if (args.Length() < 1 || !args[0]->IsString()) return ThrowTypeError(isolate, "privateSymbol takes a string");
  const v8::Local<v8::Data> symbol = v8::Private::New(isolate, args[0].As<v8::String>());
  args.GetReturnValue().Set(symbol.As<v8::Value>());
}

constexpr Function kFunctions[] = {
    {"structuredClone", StructuredClone}, {"serialize", Serialize},
    {"deserialize", Deserialize},         {"isProxy", IsProxy},
    {"promiseState", PromiseState},       {"proxyTarget", ProxyTarget},
    {"proxyHandler", ProxyHandler},       {"previewEntries", PreviewEntries},
    {"privateSymbol", PrivateSymbol},
};

}  // namespace

std::span<const Function> CloneFunctions() { return kFunctions; }

}  // namespace engine::native
