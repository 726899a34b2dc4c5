// Cryptography: https://w3c.github.io/webcrypto/ and https://wicg.github.io/webcrypto-modern-algos/

type KeyType = "public" | "private" | "secret";
type KeyFormat = "raw" | "pkcs8" | "spki" | "jwk" | "raw-public" | "raw-private" | "raw-seed" | "raw-secret";
type KeyUsage =
  | "encrypt"
  | "decrypt"
  | "sign"
  | "verify"
  | "deriveKey"
  | "deriveBits"
  | "wrapKey"
  | "unwrapKey"
  | "encapsulateKey"
  | "encapsulateBits"
  | "decapsulateKey"
  | "decapsulateBits";

/** The name of an algorithm, or an object with its name and its parameters. */
type AlgorithmIdentifier = string | Algorithm;

interface Algorithm {
  name: string;
}
interface KeyAlgorithm {
  name: string;
}
interface AesKeyParams extends Algorithm {
  length: number;
}
interface AesCbcParams extends Algorithm {
  iv: BytesOf;
}
interface AesCtrParams extends Algorithm {
  counter: BytesOf;
  length: number;
}
/** AES-GCM, AES-OCB and ChaCha20-Poly1305. */
interface AeadParams extends Algorithm {
  iv: BytesOf;
  additionalData?: BytesOf;
  tagLength?: number;
}
interface HmacParams extends Algorithm {
  hash: AlgorithmIdentifier;
  length?: number;
}
interface RsaHashedParams extends Algorithm {
  hash: AlgorithmIdentifier;
}
interface RsaHashedKeyGenParams extends RsaHashedParams {
  modulusLength: number;
  publicExponent: Uint8Array;
}
interface RsaPssParams extends Algorithm {
  saltLength: number;
}
interface RsaOaepParams extends Algorithm {
  label?: BytesOf;
}
interface EcKeyParams extends Algorithm {
  namedCurve: string;
}
interface EcdsaParams extends Algorithm {
  hash: AlgorithmIdentifier;
}
/** Ed448 and ML-DSA. */
interface ContextParams extends Algorithm {
  context?: BytesOf;
}
interface EcdhKeyDeriveParams extends Algorithm {
  public: CryptoKey;
}
interface HkdfParams extends Algorithm {
  hash: AlgorithmIdentifier;
  salt: BytesOf;
  info: BytesOf;
}
interface Pbkdf2Params extends Algorithm {
  hash: AlgorithmIdentifier;
  salt: BytesOf;
  iterations: number;
}

type CipherParams = AlgorithmIdentifier | AesCbcParams | AesCtrParams | AeadParams | RsaOaepParams;
type SignParams = AlgorithmIdentifier | RsaPssParams | EcdsaParams | ContextParams;
type KeyParams = AlgorithmIdentifier | AesKeyParams | HmacParams | RsaHashedParams | EcKeyParams;
type KeyGenParams = AlgorithmIdentifier | AesKeyParams | HmacParams | RsaHashedKeyGenParams | EcKeyParams;
type DeriveParams = AlgorithmIdentifier | EcdhKeyDeriveParams | HkdfParams | Pbkdf2Params;

interface JsonWebKey {
  kty?: string;
  use?: string;
  key_ops?: string[];
  alg?: string;
  ext?: boolean;
  crv?: string;
  x?: string;
  y?: string;
  d?: string;
  n?: string;
  e?: string;
  p?: string;
  q?: string;
  dp?: string;
  dq?: string;
  qi?: string;
  oth?: { r?: string; d?: string; t?: string }[];
  k?: string;
  pub?: string;
  priv?: string;
}

declare class CryptoKey {
  private constructor();
  readonly type: KeyType;
  readonly extractable: boolean;
  readonly algorithm: KeyAlgorithm & { readonly [name: string]: any };
  readonly usages: KeyUsage[];
}

interface CryptoKeyPair {
  publicKey: CryptoKey;
  privateKey: CryptoKey;
}

declare class SubtleCrypto {
  private constructor();
  static supports(operation: string, algorithm: AlgorithmIdentifier, length?: number | null): boolean;
  static supports(operation: string, algorithm: AlgorithmIdentifier, additional: AlgorithmIdentifier): boolean;
  encrypt(algorithm: CipherParams, key: CryptoKey, data: BytesOf): Promise<ArrayBuffer>;
  decrypt(algorithm: CipherParams, key: CryptoKey, data: BytesOf): Promise<ArrayBuffer>;
  sign(algorithm: SignParams, key: CryptoKey, data: BytesOf): Promise<ArrayBuffer>;
  verify(algorithm: SignParams, key: CryptoKey, signature: BytesOf, data: BytesOf): Promise<boolean>;
  digest(algorithm: AlgorithmIdentifier, data: BytesOf): Promise<ArrayBuffer>;
  generateKey(
    algorithm: "Ed25519" | "Ed448" | "X25519" | "X448" | RsaHashedKeyGenParams | EcKeyParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<CryptoKeyPair>;
  generateKey(
    algorithm: AesKeyParams | HmacParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<CryptoKey>;
  generateKey(
    algorithm: KeyGenParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<CryptoKey | CryptoKeyPair>;
  deriveKey(
    algorithm: DeriveParams,
    base: CryptoKey,
    derived: KeyParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<CryptoKey>;
  deriveBits(algorithm: DeriveParams, base: CryptoKey, length?: number | null): Promise<ArrayBuffer>;
  importKey(
    format: "jwk",
    key: JsonWebKey,
    algorithm: KeyParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<CryptoKey>;
  importKey(
    format: KeyFormat,
    key: BytesOf | JsonWebKey,
    algorithm: KeyParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<CryptoKey>;
  exportKey(format: "jwk", key: CryptoKey): Promise<JsonWebKey>;
  exportKey(format: Exclude<KeyFormat, "jwk">, key: CryptoKey): Promise<ArrayBuffer>;
  exportKey(format: KeyFormat, key: CryptoKey): Promise<ArrayBuffer | JsonWebKey>;
  wrapKey(format: KeyFormat, key: CryptoKey, by: CryptoKey, algorithm: CipherParams): Promise<ArrayBuffer>;
  unwrapKey(
    format: KeyFormat,
    wrapped: BytesOf,
    by: CryptoKey,
    algorithm: CipherParams,
    keyAlgorithm: KeyParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<CryptoKey>;
  getPublicKey(key: CryptoKey, usages: readonly KeyUsage[]): Promise<CryptoKey>;
  encapsulateKey(
    algorithm: AlgorithmIdentifier,
    key: CryptoKey,
    shared: KeyParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<{ sharedKey: CryptoKey; ciphertext: ArrayBuffer }>;
  encapsulateBits(
    algorithm: AlgorithmIdentifier,
    key: CryptoKey,
  ): Promise<{ sharedKey: ArrayBuffer; ciphertext: ArrayBuffer }>;
  decapsulateKey(
    algorithm: AlgorithmIdentifier,
    key: CryptoKey,
    ciphertext: BytesOf,
    shared: KeyParams,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ): Promise<CryptoKey>;
  decapsulateBits(algorithm: AlgorithmIdentifier, key: CryptoKey, ciphertext: BytesOf): Promise<ArrayBuffer>;
  /** Cloudflare's: compares without telling by time where the two differ. Throws when the lengths do. */
  timingSafeEqual(a: BytesOf, b: BytesOf): boolean;
}

/** Cloudflare's: a sink that digests what is written to it. */
interface DigestStream extends WritableStream<BytesOf> {
  readonly digest: Promise<ArrayBuffer>;
  readonly bytesWritten: number | bigint;
}

declare class Crypto {
  private constructor();
  readonly subtle: SubtleCrypto;
  readonly DigestStream: { new (algorithm: AlgorithmIdentifier, strategy?: QueuingStrategy): DigestStream };
  getRandomValues<Values extends ArrayBufferView>(values: Values): Values;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
}
declare var crypto: Crypto;
