// What node:crypto tells about keys, and the numbers of keys on elliptic curves.

#include <openssl/core_names.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include <cctype>
#include <string>

#include "isolate/realm.h"
#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

using ParamsBuilder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;

std::string Lowered(const char* text) {
  std::string lowered(text == nullptr ? "" : text);
  for (char& letter : lowered) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return lowered;
}

int BitsOf(EVP_PKEY* pkey, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(pkey, name, &number) != 1) return 0;
  const Number owned(number);
  return BN_num_bits(number);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
// The restrictions of an RSA-PSS key: hash, hash of the mask, length of the salt. Only the older functions of OpenSSL
// tell a key without restrictions from one with the default values.
std::string Restrictions(EVP_PKEY* pkey) {
  const RSA* rsa = EVP_PKEY_get0_RSA(pkey);
  const RSA_PSS_PARAMS* params = rsa == nullptr ? nullptr : RSA_get0_pss_params(rsa);
  if (params == nullptr) return "";
  const auto name_of = [](const X509_ALGOR* algorithm) -> std::string {
    const ASN1_OBJECT* object = nullptr;
    if (algorithm == nullptr) return "sha1";
    X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
    return OBJ_nid2ln(OBJ_obj2nid(object));
  };
  int64_t salt = 20;
  if (params->saltLength != nullptr && ASN1_INTEGER_get_int64(&salt, params->saltLength) != 1) return "";
  return " " + name_of(params->hashAlgorithm) + " " + name_of(params->maskHash) + " " + std::to_string(salt);
}
#pragma GCC diagnostic pop

// keyInfo(handle) -> "kind", then for RSA "bits exponent" and the restrictions, for DSA "bits bits", for EC "curve"
void KeyInfo(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  if (op.Refused()) return;
  ErrorScope errors;
  EVP_PKEY* pkey = key->pkey.get();
  const std::string kind = Lowered(EVP_PKEY_get0_type_name(pkey));
  std::string text = kind;
  if (kind == "rsa" || kind == "rsa-pss") {
    BIGNUM* exponent = nullptr;
    if (EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_RSA_E, &exponent) != 1) return;
    const Number owned(exponent);
    char* hex = BN_bn2hex(exponent);
    text += " " + std::to_string(EVP_PKEY_get_bits(pkey)) + " " + (hex == nullptr ? "0" : hex);
    OPENSSL_free(hex);
    if (kind == "rsa-pss") text += Restrictions(pkey);
  } else if (kind == "dsa") {
    text += " " + std::to_string(BitsOf(pkey, OSSL_PKEY_PARAM_FFC_P)) + " " +
            std::to_string(BitsOf(pkey, OSSL_PKEY_PARAM_FFC_Q));
  } else if (kind == "ec") {
    char name[64];
    size_t length = 0;
    if (EVP_PKEY_get_group_name(pkey, name, sizeof name, &length) == 1) text += " " + std::string(name, length);
  }
  args.GetReturnValue().Set(ToV8(args.GetIsolate(), text));
}

// equalKeys(handle, handle) -> boolean: whether their public halves are the same; undefined if they cannot be compared
void EqualKeys(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> one = op.Asymmetric(0);
  const std::shared_ptr<Key> other = op.Asymmetric(1);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    const int equal = EVP_PKEY_eq(one->pkey.get(), other->pkey.get());
    if (equal == -2) return Failed();
    return equal == 1;
  });
}

// ecParts(handle, private) -> [x, y] or [x, y, d], each with the length of a coordinate
void EcParts(const Arguments& args) {
  static constexpr const char* kNames[] = {OSSL_PKEY_PARAM_EC_PUB_X, OSSL_PKEY_PARAM_EC_PUB_Y,
                                           OSSL_PKEY_PARAM_PRIV_KEY};
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const size_t count = op.Flag(1) ? 3 : 2;
  if (op.Refused()) return;
  ErrorScope errors;
  const size_t size = (static_cast<size_t>(EVP_PKEY_get_bits(key->pkey.get())) + 7) / 8;
  Bytes list[3];
  for (size_t i = 0; i < count; i++) {
    BIGNUM* number = nullptr;
    if (EVP_PKEY_get_bn_param(key->pkey.get(), kNames[i], &number) != 1) return;
    const Number owned(number);
    list[i] = Bytes(size);
    if (!list[i].ok() || BN_bn2binpad(number, list[i].data(), static_cast<int>(size)) < 0) return;
  }
  op.FinishWithList({list, count});
}

// ecKey(curve, point, secret | undefined) -> handle; undefined if they are not a key
void EcKey(const Arguments& args) {
  Operation op(args);
  std::string curve = FromV8(args.GetIsolate(), args[0]).substr(0, 64);
  const Input point = op.View(1);
  const Input secret = op.IsGiven(2) ? op.View(2) : Input();
  if (op.Refused() || point.size() > 256 || secret.size() > 128) return;
  op.Finish([&](const Job*) -> Result {
    const ParamsBuilder builder(OSSL_PARAM_BLD_new());
    const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
    const Number number(BN_secure_new());
    if (builder == nullptr || context == nullptr || number == nullptr || point.size() == 0 ||
        OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.c_str(), 0) != 1 ||
        OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1) {
      return Failed();
    }
    if (secret.size() > 0 && (BN_bin2bn(secret.data(), static_cast<int>(secret.size()), number.get()) == nullptr ||
                              OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, number.get()) != 1)) {
      return Failed();
    }
    const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
    EVP_PKEY* pkey = nullptr;
    const int selection = secret.size() == 0 ? EVP_PKEY_PUBLIC_KEY : EVP_PKEY_KEYPAIR;
    if (params == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
        EVP_PKEY_fromdata(context.get(), &pkey, selection, params.get()) != 1) {
      return Failed();
    }
    return Pkey(pkey);
  });
}

constexpr Function kFunctions[] = {
    {"keyInfo", KeyInfo}, {"equalKeys", EqualKeys}, {"ecParts", EcParts}, {"ecKey", EcKey}};

}  // namespace

std::span<const Function> KeyPartFunctions() { return kFunctions; }

}  // namespace engine::native
