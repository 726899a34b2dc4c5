// Keys of node:crypto in all formats of OpenSSL: PEM and DER, PKCS #1, PKCS #8, SEC 1, SubjectPublicKeyInfo, encrypted
// or not.
//
// The work that an encrypted key asks for (iterations, memory) is part of the key, and OpenSSL cannot be interrupted
// while it does it. So it is read first, and a key that asks for too much is refused.

#include <openssl/pem.h>

#include <cstring>
#include <string>

#include "isolate/realm.h"
#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using EncryptedKey = std::unique_ptr<X509_SIG, Freed<X509_SIG_free>>;
using Pkcs8 = std::unique_ptr<PKCS8_PRIV_KEY_INFO, Freed<PKCS8_PRIV_KEY_INFO_free>>;

constexpr size_t kMostBytes = 256 * 1024;
constexpr int kMostBits = 8192;          // of a modulus or a prime: the use of a larger one takes seconds
constexpr int64_t kMostSteps = 1 << 20;  // of the derivation of the key that encrypts a key: about half a second

// The encodings, with their numbers in JavaScript.
enum Encoding : uint32_t { kAny, kPkcs1, kPkcs8, kSpki, kSec1 };

Bio Reading(std::span<const uint8_t> bytes) {
  // OpenSSL refuses a null pointer.
  return Bio(
      BIO_new_mem_buf(bytes.empty() ? "" : static_cast<const void*>(bytes.data()), static_cast<int>(bytes.size())));
}

int GivePassphrase(char* room, int size, int, void* data) {
  const auto* passphrase = static_cast<const Input*>(data);
  if (passphrase == nullptr || passphrase->size() > static_cast<size_t>(size)) return -1;
  if (passphrase->size() > 0) std::memcpy(room, passphrase->data(), passphrase->size());
  return static_cast<int>(passphrase->size());
}

int64_t NumberOf(const ASN1_INTEGER* number) {
  int64_t value = 0;
  return number != nullptr && ASN1_INTEGER_get_int64(&value, number) == 1 ? value : kMostSteps + 1;
}

// The steps that `algorithm` of PKCS #5 or #12 takes to derive a key.
int64_t StepsOf(const X509_ALGOR* algorithm) {
  const ASN1_OBJECT* object = nullptr;
  const void* value = nullptr;
  int type = 0;
  X509_ALGOR_get0(&object, &type, &value, algorithm);
  if (type != V_ASN1_SEQUENCE) return 0;
  const auto* sequence = static_cast<const ASN1_STRING*>(value);
  const uint8_t* at = ASN1_STRING_get0_data(sequence);
  const long size = ASN1_STRING_length(sequence);
  const int nid = OBJ_obj2nid(object);
  if (nid == NID_pbes2) {
    const std::unique_ptr<PBE2PARAM, Freed<PBE2PARAM_free>> both(d2i_PBE2PARAM(nullptr, &at, size));
    return both == nullptr || OBJ_obj2nid(both->keyfunc->algorithm) == NID_pbes2 ? 0 : StepsOf(both->keyfunc);
  }
  if (nid == NID_id_pbkdf2) {
    const std::unique_ptr<PBKDF2PARAM, Freed<PBKDF2PARAM_free>> params(d2i_PBKDF2PARAM(nullptr, &at, size));
    return params == nullptr ? 0 : NumberOf(params->iter);
  }
  if (nid == NID_id_scrypt) {
    const std::unique_ptr<SCRYPT_PARAMS, Freed<SCRYPT_PARAMS_free>> params(d2i_SCRYPT_PARAMS(nullptr, &at, size));
    if (params == nullptr) return 0;
    const int64_t cost = NumberOf(params->costParameter);
    const int64_t block = NumberOf(params->blockSize);
    const int64_t lanes = NumberOf(params->parallelizationParameter);
    if (cost > kMostSteps || block > 1024 || lanes > 1024) return kMostSteps + 1;
    return cost * block * lanes;
  }
  const std::unique_ptr<PBEPARAM, Freed<PBEPARAM_free>> params(d2i_PBEPARAM(nullptr, &at, size));
  return params == nullptr ? 0 : NumberOf(params->iter);
}

bool TakesTooLong(std::span<const uint8_t> der) {
  ERR_set_mark();
  const uint8_t* at = der.data();
  const EncryptedKey key(d2i_X509_SIG(nullptr, &at, static_cast<long>(der.size())));
  const X509_ALGOR* algorithm = nullptr;
  if (key != nullptr) X509_SIG_get0(key.get(), &algorithm, nullptr);
  const bool too_long = algorithm != nullptr && StepsOf(algorithm) > kMostSteps;
  ERR_pop_to_mark();
  return too_long;
}

// True if a block of PEM is an encrypted key whose decryption takes too long.
bool HasHardBlock(std::span<const uint8_t> pem) {
  const Bio bio = Reading(pem);
  if (bio == nullptr) return true;
  bool hard = false;
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long length = 0;
  ERR_set_mark();
  while (!hard && PEM_read_bio(bio.get(), &name, &header, &data, &length) == 1) {
    hard = TakesTooLong({data, static_cast<size_t>(length)});
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, static_cast<size_t>(length));
  }
  ERR_pop_to_mark();
  return hard;
}

Pkey ReadPrivateDer(std::span<const uint8_t> der, Encoding encoding, void* passphrase) {
  const Bio bio = Reading(der);
  if (bio == nullptr) return nullptr;
  if (encoding == kPkcs1 || encoding == kSec1) return Pkey(d2i_PrivateKey_bio(bio.get(), nullptr));
  const uint8_t* at = der.data();
  const long size = static_cast<long>(der.size());
  ERR_set_mark();
  const EncryptedKey encrypted(d2i_X509_SIG(nullptr, &at, size));
  ERR_pop_to_mark();
  if (encrypted != nullptr) return Pkey(d2i_PKCS8PrivateKey_bio(bio.get(), nullptr, GivePassphrase, passphrase));
  const Pkcs8 info(d2i_PKCS8_PRIV_KEY_INFO_bio(bio.get(), nullptr));
  return Pkey(info == nullptr ? nullptr : EVP_PKCS82PKEY(info.get()));
}

// A public key from the first block of PEM with this name. `found` says whether there is one.
Pkey ReadBlock(std::span<const uint8_t> pem, const char* name, Pkey (*read)(std::span<const uint8_t>), bool& found) {
  const Bio bio = Reading(pem);
  unsigned char* data = nullptr;
  long length = 0;
  ERR_set_mark();
  found = bio != nullptr && PEM_bytes_read_bio(&data, &length, nullptr, name, bio.get(), GivePassphrase, nullptr) == 1;
  ERR_pop_to_mark();
  if (!found) return nullptr;
  Pkey key = read({data, static_cast<size_t>(length)});
  OPENSSL_clear_free(data, static_cast<size_t>(length));
  return key;
}

Pkey ReadSpki(std::span<const uint8_t> der) {
  const uint8_t* at = der.data();
  return Pkey(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
}

Pkey ReadRsaPublic(std::span<const uint8_t> der) {
  const uint8_t* at = der.data();
  return Pkey(d2i_PublicKey(EVP_PKEY_RSA, nullptr, &at, static_cast<long>(der.size())));
}

Pkey ReadCertified(std::span<const uint8_t> der) {
  const uint8_t* at = der.data();
  const Certificate certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  return Pkey(certificate == nullptr ? nullptr : X509_get_pubkey(certificate.get()));
}

Pkey ReadPublicPem(std::span<const uint8_t> pem, bool& found) {
  static constexpr struct {
    const char* name;
    Pkey (*read)(std::span<const uint8_t>);
  } kBlocks[] = {{"PUBLIC KEY", ReadSpki}, {"RSA PUBLIC KEY", ReadRsaPublic}, {"CERTIFICATE", ReadCertified}};
  for (const auto& block : kBlocks) {
    Pkey key = ReadBlock(pem, block.name, block.read, found);
    if (found) return key;
  }
  return nullptr;
}

Result Finished(Pkey pkey) {
  if (pkey == nullptr || ERR_peek_error() != 0) return Faulted();
  if (!IsUsableKey(pkey.get())) return Failed();
  return pkey;
}

// readKey(bytes, pem, encoding, private, passphrase | undefined) -> handle; text if OpenSSL refuses it; false if it is
// encrypted and there is no passphrase; undefined if it takes too long to decrypt or to use
void ReadKey(const Arguments& args) {
  Operation op(args);
  const Input bytes = op.View(0);
  const bool pem = op.Flag(1);
  const Encoding encoding = static_cast<Encoding>(op.Integer(2));
  const bool is_private = op.Flag(3);
  Input passphrase = op.IsGiven(4) ? op.View(4) : Input();
  void* secret = op.IsGiven(4) ? &passphrase : nullptr;
  if (op.Refused() || bytes.size() > kMostBytes) return;
  op.Finish([&](const Job*) -> Result {
    if (bytes.size() > 0 && (pem ? HasHardBlock(bytes.span()) : TakesTooLong(bytes.span()))) return Failed();
    if (!is_private) {
      bool found = true;
      return Finished(pem                  ? ReadPublicPem(bytes.span(), found)
                      : encoding == kPkcs1 ? ReadRsaPublic(bytes.span())
                                           : ReadSpki(bytes.span()));
    }
    const Bio bio = Reading(bytes.span());
    Pkey key = pem ? Pkey(PEM_read_bio_PrivateKey(bio.get(), nullptr, GivePassphrase, secret))
                   : ReadPrivateDer(bytes.span(), encoding, secret);
    const unsigned long error = ERR_peek_error();
    if (secret == nullptr && ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_BAD_PASSWORD_READ) {
      return false;
    }
    return Finished(std::move(key));
  });
}

// isPublicPem(bytes) -> true if the text has a public key or a certificate
void IsPublicPem(const Arguments& args) {
  Operation op(args);
  const Input bytes = op.View(0);
  if (op.Refused() || bytes.size() > kMostBytes) return;
  op.Finish([&](const Job*) -> Result {
    bool found = false;
    (void)ReadPublicPem(bytes.span(), found);
    return found;
  });
}

Result Taken(BIO* bio, bool written) {
  const char* data = nullptr;
  if (!written) return Faulted();
  const long size = BIO_get_mem_data(bio, &data);
  return Bytes(std::span(reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(size)));
}

bool WritePublic(BIO* bio, EVP_PKEY* pkey, Encoding encoding, bool pem) {
  if (encoding != kPkcs1) return (pem ? PEM_write_bio_PUBKEY(bio, pkey) : i2d_PUBKEY_bio(bio, pkey)) == 1;
  uint8_t* der = nullptr;
  const int length = i2d_PublicKey(pkey, &der);
  if (length <= 0) return false;
  const bool written =
      pem ? PEM_write_bio(bio, PEM_STRING_RSA_PUBLIC, "", der, length) > 0 : BIO_write(bio, der, length) == length;
  OPENSSL_free(der);
  return written;
}

bool WritePrivate(BIO* bio, EVP_PKEY* pkey, Encoding encoding, bool pem, const EVP_CIPHER* cipher, Input& passphrase) {
  // OpenSSL asks the terminal for a passphrase unless it gets a pointer.
  char* word = reinterpret_cast<char*>(const_cast<uint8_t*>(passphrase.data()));
  char none = 0;
  if (word == nullptr) word = &none;
  const int size = static_cast<int>(passphrase.size());
  if (encoding == kPkcs8) {
    return (pem ? PEM_write_bio_PKCS8PrivateKey(bio, pkey, cipher, word, size, nullptr, nullptr)
                : i2d_PKCS8PrivateKey_bio(bio, pkey, cipher, word, size, nullptr, nullptr)) == 1;
  }
  if (!pem) return i2d_PrivateKey_bio(bio, pkey) == 1;
  return PEM_write_bio_PrivateKey_traditional(bio, pkey, cipher, reinterpret_cast<unsigned char*>(word), size, nullptr,
                                              nullptr) == 1;
}

// writeKey(handle, private, encoding, pem, cipher | undefined, passphrase) -> ArrayBuffer; text if OpenSSL refuses;
// undefined if there is no such cipher
void WriteKey(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Asymmetric(0);
  const bool is_private = op.Flag(1);
  const Encoding encoding = static_cast<Encoding>(op.Integer(2));
  const bool pem = op.Flag(3);
  Input passphrase = op.View(5);
  if (op.Refused() || passphrase.size() > 1024) return;
  const EVP_CIPHER* cipher = nullptr;
  if (op.IsGiven(4)) {
    cipher = EVP_get_cipherbyname(FromV8(args.GetIsolate(), args[4]).substr(0, 64).c_str());
    if (cipher == nullptr) return;
  }
  op.Finish([&](const Job*) -> Result {
    const Bio bio(BIO_new(BIO_s_secmem()));
    if (bio == nullptr) return Failed();
    return Taken(bio.get(), is_private ? WritePrivate(bio.get(), key->pkey.get(), encoding, pem, cipher, passphrase)
                                       : WritePublic(bio.get(), key->pkey.get(), encoding, pem));
  });
}

constexpr Function kFunctions[] = {{"readKey", ReadKey}, {"isPublicPem", IsPublicPem}, {"writeKey", WriteKey}};

}  // namespace

bool IsUsableKey(EVP_PKEY* pkey) {
  if (EVP_PKEY_is_a(pkey, "RSA") || EVP_PKEY_is_a(pkey, "RSA-PSS")) return IsSoundRsa(pkey);
  if (EVP_PKEY_is_a(pkey, "DSA") || EVP_PKEY_is_a(pkey, "DH") || EVP_PKEY_is_a(pkey, "DHX")) {
    return EVP_PKEY_get_bits(pkey) <= kMostBits;
  }
  return true;
}

std::span<const Function> KeyFunctions() { return kFunctions; }

}  // namespace engine::native
