// Certificates until there is no room for them.
// expect: exception or cpu or memory
// limits: cpu_ms=2000
import crypto from "node:crypto";

const PEM = `-----BEGIN CERTIFICATE-----
MIIBRDCB96ADAgECAhRTRsw6Ll5l2QBE33RhScZgqnq0pTAFBgMrZXAwGDEWMBQG
A1UEAwwNcGxhaW4uZXhhbXBsZTAeFw0yNjExMTgxNTEwNDNaFw0yNzExMTgxNTEw
NDNaMBgxFjAUBgNVBAMMDXBsYWluLmV4YW1wbGUwKjAFBgMrZXADIQCBxKXEN4Ko
kqCVT18wQzVYQZt8JsxXgOBsIGV07pDTnKNTMFEwHQYDVR0OBBYEFOEVHnEkkQag
Up/52RMC8dJzrR/YMB8GA1UdIwQYMBaAFOEVHnEkkQagUp/52RMC8dJzrR/YMA8G
A1UdEwEB/wQFMAMBAf8wBQYDK2VwA0EAHd6WKP6FxwcOLnt3S5FySiB6EuulOr4N
k6i+G29gzZ8jYrkPF0ED/2Amlb28Sop/ugdkpteSNo5JaB6WNdjyDQ==
-----END CERTIFICATE-----`;

export default {
  fetch() {
    const all = [];
    for (;;) all.push(new crypto.X509Certificate(PEM));
  },
};
