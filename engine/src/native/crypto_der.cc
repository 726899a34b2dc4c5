// Asymmetric keys as DER: PKCS #8 and SubjectPublicKeyInfo.

#include <openssl/x509.h>

#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

using Pkcs8 = std::unique_ptr<PKCS8_PRIV_KEY_INFO, Freed<PKCS8_PRIV_KEY_INFO_free>>;

constexpr size_t kMostBytes = 64 * 1024;

// The kinds of keys, with their numbers in JavaScript.
enum Kind : uint32_t { kRsa, kEc, kEd25519, kX25519, kEd448, kX448 };

int TypeOf(uint32_t kind) {
  constexpr int types[] = {EVP_PKEY_RSA, EVP_PKEY_EC, EVP_PKEY_ED25519, EVP_PKEY_X25519, EVP_PKEY_ED448, EVP_PKEY_X448};
  return kind < std::size(types) ? types[kind] : EVP_PKEY_NONE;
}

// Rejects data after the key.
Pkey ReadPrivate(std::span<const uint8_t> der) {
  const uint8_t* at = der.data();
  const Pkcs8 info(d2i_PKCS8_PRIV_KEY_INFO(nullptr, &at, static_cast<long>(der.size())));
  if (info == nullptr || at != der.data() + der.size()) return nullptr;
  return Pkey(EVP_PKCS82PKEY(info.get()));
}

Pkey ReadPublic(std::span<const uint8_t> der) {
  const uint8_t* at = der.data();
  Pkey pkey(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
  return at == der.data() + der.size() ? std::move(pkey) : nullptr;
}

// importDer(kind, private, bytes, curve) -> handle; undefined if the bytes are not such a key
void ImportDer(const Arguments& args) {
  Operation op(args);
  const uint32_t kind = op.Integer(0);
  const bool is_private = op.Flag(1);
  const Input der = op.View(2);
  const Curve* curve = kind == kEc ? op.NamedCurve(3) : nullptr;
  if (op.Refused()) return;
  if (der.size() == 0 || der.size() > kMostBytes) return;
  op.Finish([&](const Job*) -> Result {
    Pkey pkey = is_private ? ReadPrivate(der.span()) : ReadPublic(der.span());
    if (pkey == nullptr || EVP_PKEY_get_base_id(pkey.get()) != TypeOf(kind)) return Failed();
    if (kind == kRsa && !IsSoundRsa(pkey.get())) return Failed();
    if (kind == kEc && !IsSoundEc(pkey.get(), *curve, is_private)) return Failed();
    return pkey;
  });
}

// exportDer(handle, private) -> ArrayBuffer
void ExportDer(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const bool is_private = op.Flag(1);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    Pkcs8 info;
    if (is_private) info.reset(EVP_PKEY2PKCS8(key->pkey.get()));
    if (is_private && info == nullptr) return Failed();
    const auto write = [&](uint8_t** at) {
      return is_private ? i2d_PKCS8_PRIV_KEY_INFO(info.get(), at) : i2d_PUBKEY(key->pkey.get(), at);
    };
    const int length = write(nullptr);
    if (length <= 0) return Failed();
    Bytes out(static_cast<size_t>(length));
    uint8_t* at = out.data();
    if (!out.ok() || write(&at) != length) return Failed();
    return out;
  });
}

constexpr Function kFunctions[] = {{"importDer", ImportDer}, {"exportDer", ExportDer}};

}  // namespace

std::span<const Function> DerFunctions() { return kFunctions; }

}  // namespace engine::native
