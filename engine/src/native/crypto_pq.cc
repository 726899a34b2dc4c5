// Post-quantum keys, on OpenSSL: ML-DSA signs, ML-KEM encapsulates. https://wicg.github.io/webcrypto-modern-algos/
//
// A private key is its seed, a public key the bytes of its encoding. JavaScript handles the formats around them (DER,
// JSON).

#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <iterator>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

struct Scheme {
  const char* name;
  size_t seed_bytes;
  size_t public_bytes;
};

// In the order of the numbers in JavaScript.
constexpr Scheme kSchemes[] = {
    {"ML-DSA-44", 32, 1312}, {"ML-DSA-65", 32, 1952},  {"ML-DSA-87", 32, 2592},
    {"ML-KEM-512", 64, 800}, {"ML-KEM-768", 64, 1184}, {"ML-KEM-1024", 64, 1568},
};

const Scheme* SchemeOf(uint32_t number) { return number < std::size(kSchemes) ? &kSchemes[number] : nullptr; }

// generatePq(scheme) -> handle
void Generate(const Arguments& args) {
  Operation op(args);
  const Scheme* scheme = SchemeOf(op.Integer(0));
  if (op.Refused() || scheme == nullptr) return;
  op.Finish([&](const Job*) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, scheme->name, nullptr));
    EVP_PKEY* pkey = nullptr;
    if (context == nullptr || EVP_PKEY_keygen_init(context.get()) != 1) return Failed();
    if (EVP_PKEY_generate(context.get(), &pkey) != 1) return Failed();
    return Pkey(pkey);
  });
}

// importPq(scheme, bytes, private) -> handle; undefined if the bytes are not such a key
void Import(const Arguments& args) {
  Operation op(args);
  const Scheme* scheme = SchemeOf(op.Integer(0));
  const Input bytes = op.View(1);
  const bool is_private = op.Flag(2);
  if (op.Refused() || scheme == nullptr) return;
  if (bytes.size() != (is_private ? scheme->seed_bytes : scheme->public_bytes)) return;
  op.Finish([&](const Job*) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, scheme->name, nullptr));
    const char* name = is_private ? OSSL_PKEY_PARAM_ML_DSA_SEED : OSSL_PKEY_PARAM_PUB_KEY;  // "seed" in both schemes
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(name, const_cast<uint8_t*>(bytes.data()), bytes.size()),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY* pkey = nullptr;
    const int selection = is_private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY;
    if (context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1) return Failed();
    if (EVP_PKEY_fromdata(context.get(), &pkey, selection, params) != 1) return Failed();
    return Pkey(pkey);
  });
}

// pqPart(handle, private) -> ArrayBuffer: the seed or the public key; undefined if it has none
void Part(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const char* name = op.Flag(1) ? OSSL_PKEY_PARAM_ML_DSA_SEED : OSSL_PKEY_PARAM_PUB_KEY;
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    size_t length = 0;
    if (EVP_PKEY_get_octet_string_param(key->pkey.get(), name, nullptr, 0, &length) != 1) return Failed();
    Bytes out(length);
    if (!out.ok()) return Failed();
    if (EVP_PKEY_get_octet_string_param(key->pkey.get(), name, out.data(), out.size(), &length) != 1) return Failed();
    return out;
  });
}

DigestContext BeginSignature(const Key& key, const Input& label, bool signs) {
  DigestContext context(EVP_MD_CTX_new());
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_octet_string(OSSL_SIGNATURE_PARAM_CONTEXT_STRING, const_cast<uint8_t*>(label.data()),
                                        label.size()),
      OSSL_PARAM_construct_end(),
  };
  if (label.size() == 0) params[0] = OSSL_PARAM_construct_end();
  const auto begin = signs ? EVP_DigestSignInit_ex : EVP_DigestVerifyInit_ex;
  if (context == nullptr || begin(context.get(), nullptr, nullptr, nullptr, nullptr, key.pkey.get(), params) != 1) {
    return nullptr;
  }
  return context;
}

// signPq(handle, data, context) -> ArrayBuffer
void SignPq(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(1);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  Input data = op.View(1);
  Input label = op.View(2);
  if (op.Refused()) return;
  op.Finish([key = std::move(key), data = std::move(data), label = std::move(label)](const Job*) -> Result {
    const DigestContext context = BeginSignature(*key, label, true);
    size_t length = 0;
    if (context == nullptr || EVP_DigestSign(context.get(), nullptr, &length, data.data(), data.size()) != 1) {
      return Failed();
    }
    Bytes out(length);
    if (!out.ok() || EVP_DigestSign(context.get(), out.data(), &length, data.data(), data.size()) != 1) return Failed();
    out.Shrink(length);
    return out;
  });
}

// verifyPq(handle, signature, data, context) -> boolean
void VerifyPq(const Arguments& args) {
  Operation op(args);
  op.TakesLongIfLarge(2);
  std::shared_ptr<Key> key = op.Asymmetric(0);
  Input signature = op.View(1);
  Input data = op.View(2);
  Input label = op.View(3);
  if (op.Refused()) return;
  op.Finish([key = std::move(key), signature = std::move(signature), data = std::move(data),
             label = std::move(label)](const Job*) -> Result {
    const DigestContext context = BeginSignature(*key, label, false);
    if (context == nullptr) return Failed();
    return EVP_DigestVerify(context.get(), signature.data(), signature.size(), data.data(), data.size()) == 1;
  });
}

// encapsulate(handle) -> [ciphertext, shared secret]
void Encapsulate(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  if (op.Refused()) return;
  ErrorScope errors;
  const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, key->pkey.get(), nullptr));
  size_t sizes[2] = {0, 0};
  if (context == nullptr || EVP_PKEY_encapsulate_init(context.get(), nullptr) != 1 ||
      EVP_PKEY_encapsulate(context.get(), nullptr, &sizes[0], nullptr, &sizes[1]) != 1) {
    return;
  }
  Bytes parts[2] = {Bytes(sizes[0]), Bytes(sizes[1])};
  if (!parts[0].ok() || !parts[1].ok()) return;
  if (EVP_PKEY_encapsulate(context.get(), parts[0].data(), &sizes[0], parts[1].data(), &sizes[1]) != 1) return;
  op.FinishWithList(parts);
}

// decapsulate(handle, ciphertext) -> ArrayBuffer
void Decapsulate(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const Input ciphertext = op.View(1);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, key->pkey.get(), nullptr));
    size_t length = 0;
    if (context == nullptr || EVP_PKEY_decapsulate_init(context.get(), nullptr) != 1) return Failed();
    if (EVP_PKEY_decapsulate(context.get(), nullptr, &length, ciphertext.data(), ciphertext.size()) != 1)
      return Failed();
    Bytes out(length);
    if (!out.ok() ||
        EVP_PKEY_decapsulate(context.get(), out.data(), &length, ciphertext.data(), ciphertext.size()) != 1) {
      return Failed();
    }
    out.Shrink(length);
    return out;
  });
}

constexpr Function kFunctions[] = {
    {"generatePq", Generate},     {"importPq", Import},   {"pqPart", Part},
    {"signPq", SignPq},           {"verifyPq", VerifyPq}, {"encapsulate", Encapsulate},
    {"decapsulate", Decapsulate},
};

}  // namespace

std::span<const Function> PostQuantumFunctions() { return kFunctions; }

}  // namespace engine::native
