#include "native/crypto.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "isolate/realm.h"
#include "worker/worker.h"

namespace engine::native {

namespace {

// Data of this size takes about two milliseconds to digest. Larger data goes to a job thread.
constexpr size_t kLarge = size_t{2} << 20;

}  // namespace

Bytes::Bytes(std::span<const uint8_t> content) : Bytes(content.size()) {
  if (ok() && !content.empty()) std::memcpy(data_, content.data(), content.size());
}

Bytes& Bytes::operator=(Bytes&& other) noexcept {
  if (this == &other) return *this;
  OPENSSL_clear_free(data_, room_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  room_ = std::exchange(other.room_, 0);
  return *this;
}

// Fetched once for the life of the process: looking an algorithm up by name costs as much as a small digest.
const EVP_MD* HashOf(uint32_t number) {
  static const EVP_MD* const hashes[] = {
      EVP_MD_fetch(nullptr, "MD5", nullptr),         EVP_MD_fetch(nullptr, "SHA1", nullptr),
      EVP_MD_fetch(nullptr, "SHA2-256", nullptr),    EVP_MD_fetch(nullptr, "SHA2-384", nullptr),
      EVP_MD_fetch(nullptr, "SHA2-512", nullptr),    EVP_MD_fetch(nullptr, "SHA3-256", nullptr),
      EVP_MD_fetch(nullptr, "SHA3-384", nullptr),    EVP_MD_fetch(nullptr, "SHA3-512", nullptr),
      EVP_MD_fetch(nullptr, "SHA2-224", nullptr),    EVP_MD_fetch(nullptr, "SHA2-512/256", nullptr),
      EVP_MD_fetch(nullptr, "RIPEMD-160", nullptr),  EVP_MD_fetch(nullptr, "SHA2-512/224", nullptr),
      EVP_MD_fetch(nullptr, "SHA3-224", nullptr),    EVP_MD_fetch(nullptr, "BLAKE2B-512", nullptr),
      EVP_MD_fetch(nullptr, "BLAKE2S-256", nullptr), EVP_MD_fetch(nullptr, "MD5-SHA1", nullptr),
      EVP_MD_fetch(nullptr, "SM3", nullptr),         EVP_MD_fetch(nullptr, "SHAKE-128", nullptr),
      EVP_MD_fetch(nullptr, "SHAKE-256", nullptr),
  };
  return number < std::size(hashes) ? hashes[number] : nullptr;
}

const Curve* CurveOf(uint32_t number) {
  static constexpr Curve curves[] = {
      {NID_X9_62_prime256v1, "prime256v1", 32}, {NID_secp384r1, "secp384r1", 48}, {NID_secp521r1, "secp521r1", 66}};
  return number < std::size(curves) ? &curves[number] : nullptr;
}

size_t Hmac(const EVP_MD* md, std::span<const uint8_t> key, std::initializer_list<std::span<const uint8_t>> parts,
            uint8_t* out) {
  static EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  if (hmac == nullptr) return 0;
  const MacContext context(EVP_MAC_CTX_new(hmac));
  if (context == nullptr) return 0;
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string("digest", const_cast<char*>(EVP_MD_get0_name(md)), 0),
      OSSL_PARAM_construct_end(),
  };
  // An empty key is valid; null would mean no key.
  const uint8_t none = 0;
  if (EVP_MAC_init(context.get(), key.empty() ? &none : key.data(), key.size(), params) != 1) return 0;
  for (const std::span<const uint8_t> part : parts) {
    if (!part.empty() && EVP_MAC_update(context.get(), part.data(), part.size()) != 1) return 0;
  }
  size_t length = 0;
  return EVP_MAC_final(context.get(), out, &length, EVP_MAX_MD_SIZE) == 1 ? length : 0;
}

// --- Arguments ---

size_t Operation::SizeOf(int index) const {
  if (index < 0 || !args_[index]->IsArrayBufferView()) return 0;
  return args_[index].As<v8::ArrayBufferView>()->ByteLength();
}

namespace {
thread_local bool on_the_spot = false;
}  // namespace

bool IsOutOfTime(v8::Isolate* isolate) {
  const Worker* worker = Realm::Of(isolate).worker();
  return worker != nullptr && worker->IsEnding();
}

Operation::OnTheSpot::OnTheSpot() : before_(on_the_spot) { on_the_spot = true; }

Operation::OnTheSpot::~OnTheSpot() { on_the_spot = before_; }

void Operation::GoAway(size_t bytes) {
  if (on_the_spot) return;
  const void* realm = args_.GetIsolate()->GetData(0);
  Worker* worker = realm == nullptr ? nullptr : static_cast<const Realm*>(realm)->worker();
  away_ = worker != nullptr && worker->MayStartJob(bytes);
}

void Operation::TakesLongIfLarge(int index) {
  const size_t size = SizeOf(index);
  if (size > kLarge) GoAway(size);
}

Input Operation::View(int index) {
  if (!args_[index]->IsArrayBufferView()) {
    wrong_ = true;
    return {};
  }
  const v8::Local<v8::ArrayBufferView> view = args_[index].As<v8::ArrayBufferView>();
  const size_t size = view->ByteLength();
  if (size == 0) return {};
  // The content of a small array may be on V8's own heap, where it can move.
  if (away_ || size <= 64) {
    Bytes copy(size);
    if (copy.ok()) {
      view->CopyContents(copy.data(), size);
      bytes_ += size;
      return Input(std::move(copy));
    }
    no_memory_ = true;
    return {};
  }
  return Input(WritableBytes(view));
}

uint32_t Operation::Integer(int index) {
  if (args_[index]->IsUint32()) return args_[index].As<v8::Uint32>()->Value();
  wrong_ = true;
  return 0;
}

int32_t Operation::Signed(int index) {
  if (args_[index]->IsInt32()) return args_[index].As<v8::Int32>()->Value();
  wrong_ = true;
  return 0;
}

const EVP_MD* Operation::Hash(int index) {
  const EVP_MD* hash = HashOf(Integer(index));
  if (hash == nullptr) wrong_ = true;
  return hash;
}

const Curve* Operation::NamedCurve(int index) {
  const Curve* curve = CurveOf(Integer(index));
  if (curve == nullptr) wrong_ = true;
  return curve;
}

std::shared_ptr<Key> Operation::Find(int index) {
  void* realm = args_.GetIsolate()->GetData(0);
  return realm == nullptr ? nullptr : static_cast<Realm*>(realm)->keys().Find(args_[index]);
}

std::shared_ptr<Key> Operation::Secret(int index) {
  std::shared_ptr<Key> key = Find(index);
  if (key == nullptr || !key->secret.ok()) wrong_ = true;
  return key;
}

std::shared_ptr<Key> Operation::Asymmetric(int index) {
  std::shared_ptr<Key> key = Find(index);
  if (key == nullptr || key->pkey == nullptr) wrong_ = true;
  return key;
}

std::shared_ptr<Key> Operation::Certified(int index) {
  std::shared_ptr<Key> key = Find(index);
  if (key == nullptr || key->certificate == nullptr) wrong_ = true;
  return key;
}

std::shared_ptr<Key> Operation::Digest(int index) {
  std::shared_ptr<Key> key = Find(index);
  if (key == nullptr || key->digest == nullptr) wrong_ = true;
  return key;
}

std::shared_ptr<Key> Operation::Cipher(int index) {
  std::shared_ptr<Key> key = Find(index);
  if (key == nullptr || key->cipher == nullptr) wrong_ = true;
  return key;
}

bool Operation::Refused() {
  if (wrong_) {
    ThrowTypeError(args_.GetIsolate(), "a cryptographic function got an argument of a wrong type");
  } else if (no_memory_) {
    ThrowRangeError(args_.GetIsolate(), "Not enough memory for the operation");
  }
  return wrong_ || no_memory_;
}

// --- Results ---

namespace {

v8::Local<v8::Value> ToBuffer(v8::Isolate* isolate, const Bytes& bytes) {
  v8::Local<v8::ArrayBuffer> buffer;
  const auto uninitialized = v8::BackingStoreInitializationMode::kUninitialized;
  if (!bytes.ok() || !v8::ArrayBuffer::MaybeNew(isolate, bytes.size(), uninitialized).ToLocal(&buffer)) {
    return v8::Undefined(isolate);
  }
  if (bytes.size() > 0) std::memcpy(buffer->Data(), bytes.data(), bytes.size());
  return buffer;
}

v8::Local<v8::Value> ToHandle(v8::Isolate* isolate, std::shared_ptr<Key> key) {
  void* realm = isolate->GetData(0);
  if (realm == nullptr) return v8::Undefined(isolate);
  return static_cast<Realm*>(realm)->keys().Add(isolate, std::move(key));
}

// "number of the library, name of the library, reason, whole text", a line each.
v8::Local<v8::Value> ToText(v8::Isolate* isolate, const Fault& fault) {
  char whole[256] = "";
  if (fault.number != 0) ERR_error_string_n(fault.number, whole, sizeof whole);
  const char* library = ERR_lib_error_string(fault.number);
  const char* reason = ERR_reason_error_string(fault.number);
  const std::string text = std::to_string(ERR_GET_LIB(fault.number)) + "\n" + (library == nullptr ? "" : library) +
                           "\n" + (reason == nullptr ? "" : reason) + "\n" + whole;
  return ToV8(isolate, text);
}

}  // namespace

v8::Local<v8::Value> ToValue(v8::Isolate* isolate, Result result) {
  if (const Bytes* bytes = std::get_if<Bytes>(&result)) return ToBuffer(isolate, *bytes);
  if (const Fault* fault = std::get_if<Fault>(&result)) return ToText(isolate, *fault);
  if (const bool* flag = std::get_if<bool>(&result)) return v8::Boolean::New(isolate, *flag);
  if (Pkey* pkey = std::get_if<Pkey>(&result); pkey != nullptr && *pkey != nullptr) {
    auto key = std::make_shared<Key>();
    key->pkey = std::move(*pkey);
    return ToHandle(isolate, std::move(key));
  }
  return v8::Undefined(isolate);
}

void Operation::Return(Result result) { args_.GetReturnValue().Set(ToValue(args_.GetIsolate(), std::move(result))); }

void Operation::Send(std::shared_ptr<Job> job) {
  Worker* worker = static_cast<Realm*>(args_.GetIsolate()->GetData(0))->worker();
  v8::Local<v8::Promise> promise;
  if (worker->StartJob(std::move(job), bytes_).ToLocal(&promise)) args_.GetReturnValue().Set(promise);
}

void Operation::FinishWithKey(std::shared_ptr<Key> key) {
  args_.GetReturnValue().Set(ToHandle(args_.GetIsolate(), std::move(key)));
}

void Operation::FinishWithList(std::span<Bytes> list) {
  v8::Isolate* isolate = args_.GetIsolate();
  v8::Local<v8::Value> values[8];
  size_t count = 0;
  for (const Bytes& bytes : list) {
    if (count < std::size(values)) values[count++] = ToBuffer(isolate, bytes);
  }
  args_.GetReturnValue().Set(v8::Array::New(isolate, values, count));
}

}  // namespace engine::native
