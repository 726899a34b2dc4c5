// Shared by the crypto_*.cc files: memory that is wiped, owners for OpenSSL's objects, keys, and the steps of every
// operation: read the arguments, do the work here or on a job thread, return the result.
//
// An operation that fails returns undefined, and JavaScript throws the error of the standard. An argument of a wrong
// type is a bug of the platform and throws TypeError.
#pragma once

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <v8.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "native/arguments.h"
#include "threads/jobs.h"

namespace engine::native {

// Memory whose allocation may fail and that is wiped before it is freed.
class Bytes final {
 public:
  Bytes() = default;
  explicit Bytes(size_t size) : data_(static_cast<uint8_t*>(OPENSSL_malloc(size + 1))), size_(size), room_(size + 1) {}
  explicit Bytes(std::span<const uint8_t> content);
  ~Bytes() { OPENSSL_clear_free(data_, room_); }
  Bytes(Bytes&& other) noexcept { *this = std::move(other); }
  Bytes& operator=(Bytes&& other) noexcept;

  // False when the allocation failed, and before the first one.
  bool ok() const { return data_ != nullptr; }
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const uint8_t> span() const { return {data_, size_}; }
  void Shrink(size_t size) { size_ = size < size_ ? size : size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

template <auto free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};

using Pkey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using PkeyContext = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, Freed<EVP_CIPHER_CTX_free>>;
using MacContext = std::unique_ptr<EVP_MAC_CTX, Freed<EVP_MAC_CTX_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_clear_free>>;
using NumberContext = std::unique_ptr<BN_CTX, Freed<BN_CTX_free>>;
using Group = std::unique_ptr<EC_GROUP, Freed<EC_GROUP_free>>;
using Point = std::unique_ptr<EC_POINT, Freed<EC_POINT_clear_free>>;

using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

// The object of a handle: a secret, an asymmetric key, a certificate, or a digest or cipher in progress.
struct Key {
  Bytes secret;
  Pkey pkey;
  Certificate certificate;
  DigestContext digest;
  CipherContext cipher;

  // Roughly the memory it takes.
  size_t cost() const {
    return 256 + secret.size() + (pkey == nullptr ? 0 : 4096) + (digest == nullptr ? 0 : 512) +
           (cipher == nullptr ? 0 : 1024) +
           (certificate == nullptr ? 0 : 8192 + 4 * static_cast<size_t>(i2d_X509(certificate.get(), nullptr)));
  }
};

// OpenSSL's number for an error; 0 if it gave none. JavaScript gets it as text, and throws the error that Node throws.
struct Fault {
  unsigned long number;
};

// std::monostate: the operation failed.
using Result = std::variant<std::monostate, Bytes, bool, Pkey, Fault>;

inline Result Failed() { return {}; }
// For node:crypto, whose errors are OpenSSL's: the first error of this thread.
inline Result Faulted() { return Fault{ERR_peek_error()}; }

// Discards OpenSSL's errors, which a thread keeps until they are read.
class ErrorScope final {
 public:
  ErrorScope() { ERR_clear_error(); }
  ~ErrorScope() { ERR_clear_error(); }
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;
};

// Hashes and curves by the numbers that JavaScript uses; null for other numbers.
const EVP_MD* HashOf(uint32_t number);

struct Curve {
  int nid;
  const char* name;
  size_t bytes;  // of a coordinate
};
const Curve* CurveOf(uint32_t number);

// HMAC of the concatenated parts, written to at least EVP_MAX_MD_SIZE bytes; 0 on failure.
size_t Hmac(const EVP_MD* md, std::span<const uint8_t> key, std::initializer_list<std::span<const uint8_t>> parts,
            uint8_t* out);

// True if the numbers of an RSA key, or the point of an elliptic curve key, are consistent.
bool IsSoundRsa(EVP_PKEY* pkey);
bool IsSoundEc(EVP_PKEY* pkey, const Curve& curve, bool is_private);

// True for a key that can be used in reasonable time: RSA keys must be sound, and no modulus may be too large.
bool IsUsableKey(EVP_PKEY* pkey);

// A signature of DSA or ECDSA is two numbers. OpenSSL writes them as DER, the standard of the web side by side.
Result FlattenSignature(std::span<const uint8_t> der, size_t bytes);
Bytes EncodeSignature(std::span<const uint8_t> flat);

// The bytes of a view: not copied if the work is done on the spot, copied if it is done later.
class Input final {
 public:
  Input() = default;
  explicit Input(std::span<const uint8_t> borrowed) : span_(borrowed) {}
  explicit Input(Bytes owned) : owned_(std::move(owned)), span_(owned_.span()) {}
  Input(Input&&) = default;
  Input& operator=(Input&&) = default;

  const uint8_t* data() const { return span_.data(); }
  size_t size() const { return span_.size(); }
  std::span<const uint8_t> span() const { return span_; }

 private:
  Bytes owned_;
  std::span<const uint8_t> span_;
};

// For work on the spot: true if the current entry into the isolate has used up its time.
bool IsOutOfTime(v8::Isolate* isolate);

// One call of a function in these tables.
class Operation final {
 public:
  explicit Operation(const Arguments& args) : args_(args) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // While an object of this class exists, all work of this thread is done on the spot, as the synchronous functions of
  // node:crypto require.
  class OnTheSpot final {
   public:
    OnTheSpot();
    ~OnTheSpot();
    OnTheSpot(const OnTheSpot&) = delete;
    OnTheSpot& operator=(const OnTheSpot&) = delete;

   private:
    const bool before_;
  };

  // The work takes long: do it on a job thread, if this worker may have one more job. Call this before the inputs are
  // read, because they must then be copied. `largest` is the index of the view that may be large.
  void TakesLong(int largest = -1) { GoAway(SizeOf(largest)); }
  // The work takes long if this argument, a view, is large.
  void TakesLongIfLarge(int index);
  bool IsAway() const { return away_; }

  Input View(int index);
  uint32_t Integer(int index);
  int32_t Signed(int index);
  bool Flag(int index) { return args_[index]->IsTrue(); }
  const EVP_MD* Hash(int index);
  const Curve* NamedCurve(int index);
  std::shared_ptr<Key> Secret(int index);
  std::shared_ptr<Key> Asymmetric(int index);
  std::shared_ptr<Key> Certified(int index);
  std::shared_ptr<Key> Digest(int index);
  std::shared_ptr<Key> Cipher(int index);
  bool IsGiven(int index) const { return !args_[index]->IsUndefined(); }

  // Throws if an argument is invalid.
  bool Refused();

  // `work` is (const Job*) -> Result; the job is null on the spot. Returns the result, or a promise of it.
  template <typename Work>
  void Finish(Work&& work);
  // Returns a key that already exists.
  void FinishWithKey(std::shared_ptr<Key> key);
  void FinishWithList(std::span<Bytes> list);

 private:
  template <typename Work>
  class WorkJob;

  void GoAway(size_t bytes);
  size_t SizeOf(int index) const;
  std::shared_ptr<Key> Find(int index);
  void Send(std::shared_ptr<Job> job);
  void Return(Result result);

  const Arguments& args_;
  bool wrong_ = false;
  bool no_memory_ = false;
  bool away_ = false;
  size_t bytes_ = 0;
};

v8::Local<v8::Value> ToValue(v8::Isolate* isolate, Result result);

template <typename Work>
class Operation::WorkJob final : public Job {
 public:
  explicit WorkJob(Work work) : work_(std::move(work)) {}
  void Run() override {
    ErrorScope errors;
    result_ = work_(this);
  }
  // Null: the job was stopped because it used up the CPU time of its call.
  v8::Local<v8::Value> Value(v8::Isolate* isolate) override {
    if (expired()) return v8::Null(isolate);
    return ToValue(isolate, std::move(result_));
  }

 private:
  Work work_;
  Result result_;
};

template <typename Work>
void Operation::Finish(Work&& work) {
  if (away_) {
    Send(std::make_shared<WorkJob<std::decay_t<Work>>>(std::move(work)));
    return;
  }
  ErrorScope errors;
  Return(work(nullptr));
}

}  // namespace engine::native
