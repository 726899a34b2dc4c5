// Certificates of node:crypto: X.509, and the older SPKAC.

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include "isolate/realm.h"
#include "native/crypto.h"
#include "native/native.h"

namespace engine::native {

namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Spkac = std::unique_ptr<NETSCAPE_SPKI, Freed<NETSCAPE_SPKI_free>>;

constexpr size_t kMostBytes = 64 * 1024;
constexpr unsigned long kInLines =
    ASN1_STRFLGS_ESC_2253 | ASN1_STRFLGS_ESC_CTRL | ASN1_STRFLGS_UTF8_CONVERT | XN_FLAG_SEP_MULTILINE | XN_FLAG_FN_SN;
constexpr unsigned long kInOneLine = XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB & ~ASN1_STRFLGS_ESC_CTRL;

std::string TextOf(BIO* bio) {
  const char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

// --- Alternative names ---

// A character that cannot be mistaken for a border between names.
bool IsPlain(unsigned char c, bool utf8) {
  if (c == '"' || c == '\\' || c == ',' || c == '\'' || c < ' ' || c == 0x7f) return false;
  return utf8 || c <= '~';
}

// A name as it is, or as a string of JSON if it has a character that is not plain. An attacker may choose names.
void AppendName(std::string& out, std::string_view name, bool utf8, std::string_view prefix = {}) {
  bool plain = true;
  for (const char c : name) plain = plain && IsPlain(static_cast<unsigned char>(c), utf8);
  if (!plain) out += '"';
  if (!prefix.empty()) out.append(prefix).append(":");
  if (plain) {
    out += name;
    return;
  }
  for (const char each : name) {
    const auto c = static_cast<unsigned char>(each);
    if (c == '"' || c == '\\') {
      out.append("\\").push_back(each);
    } else if ((c >= ' ' && c != ',' && c <= '~') || (utf8 && c > 0x7f)) {
      out += each;
    } else {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    }
  }
  out += '"';
}

std::string_view ViewOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text))};
}

void AppendAddress(std::string& out, const ASN1_OCTET_STRING* address) {
  const uint8_t* at = ASN1_STRING_get0_data(address);
  const int length = ASN1_STRING_length(address);
  char text[64];
  if (length == 4) {
    std::snprintf(text, sizeof text, "%d.%d.%d.%d", at[0], at[1], at[2], at[3]);
    out += text;
  } else if (length == 16) {
    for (int i = 0; i < 8; i++) {
      std::snprintf(text, sizeof text, "%s%X", i == 0 ? "" : ":", at[2 * i] << 8 | at[2 * i + 1]);
      out += text;
    }
  } else {
    std::snprintf(text, sizeof text, "<invalid length=%d>", length);
    out += text;
  }
}

void AppendOther(std::string& out, const OTHERNAME* other) {
  static constexpr struct {
    int nid;
    const char* name;
    int type;
  } kKnown[] = {{NID_id_on_SmtpUTF8Mailbox, "SmtpUTF8Mailbox", V_ASN1_UTF8STRING},
                {NID_XmppAddr, "XmppAddr", V_ASN1_UTF8STRING},
                {NID_SRVName, "SRVName", V_ASN1_IA5STRING},
                {NID_ms_upn, "UPN", V_ASN1_UTF8STRING},
                {NID_NAIRealm, "NAIRealm", V_ASN1_UTF8STRING}};
  const int nid = OBJ_obj2nid(other->type_id);
  for (const auto& known : kKnown) {
    if (known.nid != nid || other->value->type != known.type) continue;
    out += "othername:";
    AppendName(out, ViewOf(other->value->value.asn1_string), known.type == V_ASN1_UTF8STRING, known.name);
    return;
  }
  out += "othername:<unsupported>";
}

bool AppendGeneral(std::string& out, const GENERAL_NAME* name) {
  switch (name->type) {
    case GEN_DNS:
      AppendName(out += "DNS:", ViewOf(name->d.dNSName), false);
      return true;
    case GEN_EMAIL:
      AppendName(out += "email:", ViewOf(name->d.rfc822Name), false);
      return true;
    case GEN_URI:
      AppendName(out += "URI:", ViewOf(name->d.uniformResourceIdentifier), false);
      return true;
    case GEN_IPADD:
      AppendAddress(out += "IP Address:", name->d.iPAddress);
      return true;
    case GEN_OTHERNAME:
      AppendOther(out, name->d.otherName);
      return true;
    case GEN_DIRNAME: {
      const Bio bio(BIO_new(BIO_s_mem()));
      if (bio == nullptr || X509_NAME_print_ex(bio.get(), name->d.dirn, 0, kInOneLine) < 0) return false;
      AppendName(out += "DirName:", TextOf(bio.get()), true);
      return true;
    }
    case GEN_RID: {
      char text[256];
      OBJ_obj2txt(text, sizeof text, name->d.rid, true);
      out.append("Registered ID:").append(text);
      return true;
    }
    case GEN_X400:
      out += "X400Name:<unsupported>";
      return true;
    case GEN_EDIPARTY:
      out += "EdiPartyName:<unsupported>";
      return true;
    default:
      return false;
  }
}

// --- Fields ---

// An empty text: the certificate does not have the field.
using Field = std::string (*)(X509*);

std::string NameOf(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return bio != nullptr && X509_NAME_print_ex(bio.get(), name, 0, kInLines) > 0 ? TextOf(bio.get()) : std::string();
}

std::string TimeOf(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  return bio != nullptr && ASN1_TIME_print(bio.get(), time) == 1 ? TextOf(bio.get()) : std::string();
}

std::string SecondsOf(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? std::to_string(timegm(&parts)) : std::string();
}

std::string AlternativeNames(X509* certificate) {
  const int index = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
  if (index < 0) return {};
  const std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509V3_EXT_d2i(X509_get_ext(certificate, index))));
  std::string out;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); i++) {
    if (i > 0) out += ", ";
    if (!AppendGeneral(out, sk_GENERAL_NAME_value(names.get(), i))) return {};
  }
  return out;
}

std::string InfoAccess(X509* certificate) {
  const int index = X509_get_ext_by_NID(certificate, NID_info_access, -1);
  if (index < 0) return {};
  const std::unique_ptr<AUTHORITY_INFO_ACCESS, Freed<AUTHORITY_INFO_ACCESS_free>> list(
      static_cast<AUTHORITY_INFO_ACCESS*>(X509V3_EXT_d2i(X509_get_ext(certificate, index))));
  std::string out;
  for (int i = 0; list != nullptr && i < sk_ACCESS_DESCRIPTION_num(list.get()); i++) {
    const ACCESS_DESCRIPTION* each = sk_ACCESS_DESCRIPTION_value(list.get(), i);
    char method[80];
    i2t_ASN1_OBJECT(method, sizeof method, each->method);
    out.append(i > 0 ? "\n" : "").append(method).append(" - ");
    if (!AppendGeneral(out, each->location)) return {};
  }
  return out;
}

std::string KeyUsage(X509* certificate) {
  const std::unique_ptr<EXTENDED_KEY_USAGE, Freed<EXTENDED_KEY_USAGE_free>> usage(
      static_cast<EXTENDED_KEY_USAGE*>(X509_get_ext_d2i(certificate, NID_ext_key_usage, nullptr, nullptr)));
  std::string out;
  for (int i = 0; usage != nullptr && i < sk_ASN1_OBJECT_num(usage.get()); i++) {
    char text[256];
    if (OBJ_obj2txt(text, sizeof text, sk_ASN1_OBJECT_value(usage.get(), i), 1) < 0) continue;
    out.append(out.empty() ? "" : " ").append(text);
  }
  return out;
}

std::string SerialNumber(X509* certificate) {
  const Number number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* hex = number == nullptr ? nullptr : BN_bn2hex(number.get());
  const std::string text(hex == nullptr ? "" : hex);
  OPENSSL_free(hex);
  return text;
}

std::string Algorithm(X509* certificate) {
  const int nid = X509_get_signature_nid(certificate);
  return nid == NID_undef ? std::string() : OBJ_nid2ln(nid);
}

std::string AlgorithmId(X509* certificate) {
  const X509_ALGOR* algorithm = nullptr;
  const ASN1_OBJECT* object = nullptr;
  char text[256] = "";
  X509_get0_signature(nullptr, &algorithm, certificate);
  if (algorithm != nullptr) X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
  if (object != nullptr) OBJ_obj2txt(text, sizeof text, object, 1);
  return text;
}

// In the order of the numbers in JavaScript.
constexpr Field kFields[] = {
    [](X509* c) { return NameOf(X509_get_subject_name(c)); },
    [](X509* c) { return NameOf(X509_get_issuer_name(c)); },
    AlternativeNames,
    InfoAccess,
    [](X509* c) { return TimeOf(X509_get0_notBefore(c)); },
    [](X509* c) { return TimeOf(X509_get0_notAfter(c)); },
    [](X509* c) { return SecondsOf(X509_get0_notBefore(c)); },
    [](X509* c) { return SecondsOf(X509_get0_notAfter(c)); },
    KeyUsage,
    SerialNumber,
    Algorithm,
    AlgorithmId,
    [](X509* c) { return std::string(X509_check_ca(c) == 1 ? "true" : ""); },
};

// certificateField(handle, number) -> text; undefined if the certificate does not have it
void CertificateField(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Certified(0);
  const uint32_t number = op.Integer(1);
  if (op.Refused() || number >= std::size(kFields)) return;
  ErrorScope errors;
  const std::string text = kFields[number](key->certificate.get());
  if (!text.empty()) args.GetReturnValue().Set(ToV8(args.GetIsolate(), text));
}

// --- Use ---

int NoPassphrase(char*, int, int, void*) { return 0; }

// readCertificate(bytes) -> handle; text if OpenSSL refuses; undefined if it is too long
void ReadCertificate(const Arguments& args) {
  Operation op(args);
  const Input bytes = op.View(0);
  if (op.Refused() || bytes.size() > kMostBytes) return;
  ErrorScope errors;
  // OpenSSL refuses a null pointer.
  const void* start = bytes.size() == 0 ? "" : static_cast<const void*>(bytes.data());
  const Bio pem(BIO_new_mem_buf(start, static_cast<int>(bytes.size())));
  auto key = std::make_shared<Key>();
  if (pem != nullptr) key->certificate.reset(PEM_read_bio_X509_AUX(pem.get(), nullptr, NoPassphrase, nullptr));
  if (key->certificate == nullptr) {
    const uint8_t* at = bytes.data();
    key->certificate.reset(d2i_X509(nullptr, &at, static_cast<long>(bytes.size())));
  }
  if (key->certificate == nullptr) {
    args.GetReturnValue().Set(ToValue(args.GetIsolate(), Faulted()));
    return;
  }
  op.FinishWithKey(std::move(key));
}

// certificateBytes(handle) -> ArrayBuffer
void CertificateBytes(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Certified(0);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    Bytes out(static_cast<size_t>(std::max(0, i2d_X509(key->certificate.get(), nullptr))));
    uint8_t* at = out.data();
    if (!out.ok() || i2d_X509(key->certificate.get(), &at) < 0) return Failed();
    return out;
  });
}

// certificateKey(handle) -> handle of its public key; text if OpenSSL refuses
void CertificateKey(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Certified(0);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    Pkey pkey(X509_get_pubkey(key->certificate.get()));
    if (pkey == nullptr) return Faulted();
    if (!IsUsableKey(pkey.get())) return Failed();
    return pkey;
  });
}

// certificateMatches(handle, what, text, flags) -> the name that matches, or false; undefined if the text is not valid.
// `what`: 0 is a host, 1 an e-mail address, 2 an IP address.
void CertificateMatches(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Certified(0);
  const uint32_t what = op.Integer(1);
  const unsigned int flags = op.Integer(3);
  if (op.Refused() || !args[2]->IsString()) return;
  const std::string text = FromV8(args.GetIsolate(), args[2]);
  if (text.size() > kMostBytes) return;
  ErrorScope errors;
  X509* certificate = key->certificate.get();
  char* peer = nullptr;
  const int found = what == 0   ? X509_check_host(certificate, text.data(), text.size(), flags, &peer)
                    : what == 1 ? X509_check_email(certificate, text.data(), text.size(), flags)
                                : X509_check_ip_asc(certificate, text.c_str(), flags);
  const std::string name = peer == nullptr ? text : peer;
  OPENSSL_free(peer);
  if (found == 1) args.GetReturnValue().Set(ToV8(args.GetIsolate(), name));
  if (found == 0) args.GetReturnValue().Set(false);
}

// isIssuedBy(handle, handle of the issuer) -> boolean
void IsIssuedBy(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Certified(0);
  const std::shared_ptr<Key> issuer = op.Certified(1);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    return X509_check_issued(issuer->certificate.get(), key->certificate.get()) == X509_V_OK;
  });
}

// isCertified(handle, handle of a key, signed) -> boolean: whether it is the certificate of the key, or signed by it
void IsCertified(const Arguments& args) {
  Operation op(args);
  const std::shared_ptr<Key> key = op.Certified(0);
  const std::shared_ptr<Key> other = op.Asymmetric(1);
  const bool is_signed = op.Flag(2);
  if (op.Refused()) return;
  op.Finish([&](const Job*) -> Result {
    X509* certificate = key->certificate.get();
    return (is_signed ? X509_verify(certificate, other->pkey.get())
                      : X509_check_private_key(certificate, other->pkey.get())) == 1;
  });
}

// spkac(bytes, what) -> `what` 0: whether the signature is right; 1: the public key as PEM; 2: the challenge.
// Undefined if it is not valid.
void ReadSpkac(const Arguments& args) {
  Operation op(args);
  const Input bytes = op.View(0);
  const uint32_t what = op.Integer(1);
  if (op.Refused() || bytes.size() == 0 || bytes.size() > kMostBytes) return;
  op.Finish([&](const Job*) -> Result {
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const Spkac spkac(NETSCAPE_SPKI_b64_decode(text, static_cast<int>(bytes.size())));
    if (spkac == nullptr) return Failed();
    if (what == 2) {
      const std::string_view challenge = ViewOf(spkac->spkac->challenge);
      return Bytes(std::span(reinterpret_cast<const uint8_t*>(challenge.data()), challenge.size()));
    }
    const Pkey pkey(X509_PUBKEY_get(spkac->spkac->pubkey));
    if (pkey == nullptr || !IsUsableKey(pkey.get())) return Failed();
    if (what == 0) return NETSCAPE_SPKI_verify(spkac.get(), pkey.get()) > 0;
    const Bio bio(BIO_new(BIO_s_mem()));
    if (bio == nullptr || PEM_write_bio_PUBKEY(bio.get(), pkey.get()) != 1) return Failed();
    const std::string pem = TextOf(bio.get());
    return Bytes(std::span(reinterpret_cast<const uint8_t*>(pem.data()), pem.size()));
  });
}

constexpr Function kFunctions[] = {
    {"readCertificate", ReadCertificate},
    {"certificateField", CertificateField},
    {"certificateBytes", CertificateBytes},
    {"certificateKey", CertificateKey},
    {"isIssuedBy", IsIssuedBy},
    {"certificateMatches", CertificateMatches},
    {"isCertified", IsCertified},
    {"spkac", ReadSpkac},
};

}  // namespace

std::span<const Function> CertificateFunctions() { return kFunctions; }

}  // namespace engine::native
