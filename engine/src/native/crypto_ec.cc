// Keys on P-256, P-384, P-521 (ECDSA, ECDH) and on Curve25519 (Ed25519, X25519).

#include <openssl/core_names.h>
#include <openssl/param_build.h>

#include <cstring>
#include <string_view>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

using ParamsBuilder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;

struct RawType {
  const char* name;
  size_t bytes;  // of a key, private or public
};

// Keys that are plain bytes, by their numbers in JavaScript.
const RawType* TypeOfRaw(uint32_t number) {
  static constexpr RawType types[] = {{"ED25519", 32}, {"X25519", 32}, {"ED448", 57}, {"X448", 56}};
  return number < std::size(types) ? &types[number] : nullptr;
}

// The point that `bytes` encode, compressed or not; empty if it is not on the curve.
Bytes Uncompressed(const Curve& curve, std::span<const uint8_t> bytes) {
  const Group group(EC_GROUP_new_by_curve_name(curve.nid));
  if (group == nullptr || bytes.empty()) return {};
  const Point point(EC_POINT_new(group.get()));
  if (point == nullptr || EC_POINT_oct2point(group.get(), point.get(), bytes.data(), bytes.size(), nullptr) != 1 ||
      EC_POINT_is_at_infinity(group.get(), point.get())) {
    return {};
  }
  Bytes out(1 + 2 * curve.bytes);
  if (!out.ok() || EC_POINT_point2oct(group.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED, out.data(), out.size(),
                                      nullptr) != out.size()) {
    return {};
  }
  return out;
}

Pkey Build(const Curve& curve, std::span<const uint8_t> point, std::span<const uint8_t> secret) {
  const Bytes uncompressed = Uncompressed(curve, point);
  const ParamsBuilder builder(OSSL_PARAM_BLD_new());
  const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  if (!uncompressed.ok() || builder == nullptr || context == nullptr) return nullptr;
  if (OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.name, 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, uncompressed.data(),
                                       uncompressed.size()) != 1) {
    return nullptr;
  }
  Number number;
  if (!secret.empty()) {
    number.reset(BN_secure_new());
    if (number == nullptr || BN_bin2bn(secret.data(), static_cast<int>(secret.size()), number.get()) == nullptr ||
        OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, number.get()) != 1) {
      return nullptr;
    }
  }
  const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
  EVP_PKEY* pkey = nullptr;
  const int selection = secret.empty() ? EVP_PKEY_PUBLIC_KEY : EVP_PKEY_KEYPAIR;
  if (params == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &pkey, selection, params.get()) != 1) {
    return nullptr;
  }
  Pkey owned(pkey);
  return IsSoundEc(owned.get(), curve, !secret.empty()) ? std::move(owned) : nullptr;
}

// importEc(curve, point, secret | undefined) -> handle; undefined if they are not a valid key
void ImportEc(const Arguments& args) {
  Operation op(args);
  const Curve* curve = op.NamedCurve(0);
  const Input point = op.View(1);
  const Input secret = op.IsGiven(2) ? op.View(2) : Input();
  if (op.Refused()) return;
  if (point.size() > 1 + 2 * curve->bytes || secret.size() > curve->bytes) return;
  if (op.IsGiven(2) && secret.size() == 0) return;
  op.Finish([&](const Job*) -> Result { return Build(*curve, point.span(), secret.span()); });
}

// ecPoint(handle) -> ArrayBuffer: 4, x, y
void EcPoint(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    size_t length = 0;
    Bytes out(1 + 2 * 66);
    if (!out.ok() || EVP_PKEY_get_octet_string_param(key->pkey.get(), OSSL_PKEY_PARAM_PUB_KEY, out.data(), out.size(),
                                                     &length) != 1) {
      return Failed();
    }
    out.Shrink(length);
    return out;
  });
}

// ecSecret(handle, curve) -> ArrayBuffer: the private number, with the length of a coordinate
void EcSecret(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const Curve* curve = op.NamedCurve(1);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    BIGNUM* number = nullptr;
    if (EVP_PKEY_get_bn_param(key->pkey.get(), OSSL_PKEY_PARAM_PRIV_KEY, &number) != 1) return Failed();
    const Number owned(number);
    Bytes out(curve->bytes);
    if (!out.ok() || BN_bn2binpad(number, out.data(), static_cast<int>(out.size())) < 0) return Failed();
    return out;
  });
}

// generateEc(curve) -> handle
void GenerateEc(const Arguments& args) {
  Operation op(args);
  const Curve* curve = op.NamedCurve(0);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result { return Pkey(EVP_EC_gen(curve->name)); });
}

// importRaw(type, bytes, private) -> handle
void ImportRaw(const Arguments& args) {
  Operation op(args);
  const RawType* type = TypeOfRaw(op.Integer(0));
  const Input bytes = op.View(1);
  const bool is_private = op.Flag(2);
  if (op.Refused()) return;
  if (type == nullptr || bytes.size() != type->bytes) return;
  op.Finish([&](const Job*) -> Result {
    return Pkey(is_private ? EVP_PKEY_new_raw_private_key_ex(nullptr, type->name, nullptr, bytes.data(), bytes.size())
                           : EVP_PKEY_new_raw_public_key_ex(nullptr, type->name, nullptr, bytes.data(), bytes.size()));
  });
}

// rawKey(handle, private) -> ArrayBuffer
void RawKey(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const bool is_private = op.Flag(1);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    Bytes out(64);
    size_t length = out.size();
    if (!out.ok()) return Failed();
    const int found = is_private ? EVP_PKEY_get_raw_private_key(key->pkey.get(), out.data(), &length)
                                 : EVP_PKEY_get_raw_public_key(key->pkey.get(), out.data(), &length);
    if (found != 1) return Failed();
    out.Shrink(length);
    return out;
  });
}

// generateRaw(type) -> handle
void GenerateRaw(const Arguments& args) {
  Operation op(args);
  const RawType* type = TypeOfRaw(op.Integer(0));
  if (op.Refused()) return;
  if (type == nullptr) return;
  op.Finish([&](const Job*) -> Result { return Pkey(EVP_PKEY_Q_keygen(nullptr, nullptr, type->name)); });
}

constexpr Function kFunctions[] = {
    {"importEc", ImportEc},   {"ecPoint", EcPoint}, {"ecSecret", EcSecret},       {"generateEc", GenerateEc},
    {"importRaw", ImportRaw}, {"rawKey", RawKey},   {"generateRaw", GenerateRaw},
};

}  // namespace

// True if the curve is named (not given by parameters), the point is on it, and the private number matches.
bool IsSoundEc(EVP_PKEY* pkey, const Curve& curve, bool is_private) {
  char name[32];
  size_t length = 0;
  if (EVP_PKEY_get_group_name(pkey, name, sizeof name, &length) != 1 || std::string_view(name, length) != curve.name) {
    return false;
  }
  char encoding[16];
  if (EVP_PKEY_get_utf8_string_param(pkey, OSSL_PKEY_PARAM_EC_ENCODING, encoding, sizeof encoding, nullptr) != 1 ||
      std::strcmp(encoding, OSSL_PKEY_EC_ENCODING_GROUP) != 0) {
    return false;
  }
  // The point is always exported uncompressed.
  if (EVP_PKEY_set_utf8_string_param(pkey, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                     OSSL_PKEY_EC_POINT_CONVERSION_FORMAT_UNCOMPRESSED) != 1) {
    return false;
  }
  const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, pkey, nullptr));
  if (context == nullptr || EVP_PKEY_public_check_quick(context.get()) != 1) return false;
  return !is_private || (EVP_PKEY_private_check(context.get()) == 1 && EVP_PKEY_pairwise_check(context.get()) == 1);
}

std::span<const Function> CurveFunctions() { return kFunctions; }

}  // namespace engine::native
