// Calls of node:net and node:tls that open nothing. Node and a worker must give the same results and errors.
export default function calls(net, tls, Buffer) {
  const told = (call) => {
    try {
      const value = call();
      return value === undefined ? "undefined" : value;
    } catch (error) {
      return `${error.name} ${error.code}: ${error.message}`;
    }
  };
  const results = [];
  const addresses = [
    "0.0.0.0", "127.0.0.1", "256.1.1.1", "1.2.3", "1.2.3.4.", "01.2.3.4", "::", "::1", "1::", "1::2::3", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::",
    "1:2:3:4:5:6:1.2.3.4", "::ffff:1.2.3.4", "::1.2.3.256", "fe80::1%eth0", "fe80::1%eth0.0", "fe80::1%eth0@1", "fe80::1%", ":", ":::", "12345::", "", "x",
    null, undefined, 1, true, {}, [],
  ];
  for (const address of addresses) results.push([net.isIP(address), net.isIPv4(address), net.isIPv6(address)]);

  for (const options of [
    undefined, {}, null, 1, { family: "ipv6" }, { family: "IPv6" }, { family: "x" }, { family: 4 }, { port: "8080" }, { port: -1 }, { port: 65536 },
    { address: "300.1.1.1" }, { address: "::1", family: "ipv6", flowlabel: 7, port: 3 }, { address: 1 }, { flowlabel: -1 }, { flowlabel: "1" },
  ]) {
    results.push(told(() => new net.SocketAddress(options).toJSON()));
  }
  for (const text of ["1.2.3.4:8080", "1.2.3.4", "[::1]:3000", "[::1]", "::1", "invalid", ""]) results.push(told(() => net.SocketAddress.parse(text)?.toJSON()));

  const list = new net.BlockList();
  for (const rule of [
    () => list.addAddress("192.168.1.1"),
    () => list.addAddress("10.0.0.1", "ipv4"),
    () => list.addAddress("2001:db8::1", "ipv6"),
    () => list.addRange("192.168.2.1", "192.168.2.10"),
    () => list.addRange("2001:db8::10", "2001:db8::20", "ipv6"),
    () => list.addSubnet("10.1.0.0", 24),
    () => list.addSubnet("2001:db9::", 32, "ipv6"),
    () => list.addAddress(new net.SocketAddress({ address: "172.16.0.1" })),
    () => list.addAddress(123),
    () => list.addSubnet("1.2.3.4", 33),
    () => list.addSubnet("1.2.3.4", -1),
    () => list.addSubnet("1.2.3.4", "1"),
  ]) {
    results.push(told(rule));
  }
  for (const [address, family] of [
    ["192.168.1.1"], ["192.168.1.2"], ["192.168.1.1", "ipv6"], ["2001:db8::1", "ipv6"], ["2001:db8::2", "ipv6"], ["192.168.2.5"], ["192.168.2.11"],
    ["2001:db8::15", "ipv6"], ["2001:db8::21", "ipv6"], ["10.1.0.255"], ["10.1.1.0"], ["2001:db9:ffff::1", "ipv6"], ["::ffff:10.0.0.1", "ipv6"],
    ["::ffff:10.0.0.2", "ipv6"], ["172.16.0.1"], ["nonsense"],
  ]) {
    results.push(told(() => list.check(address, family)));
  }
  results.push(list.rules, net.BlockList.isBlockList(list), net.BlockList.isBlockList({}));

  for (const [host, cert] of [
    ["a.com", { subject: { CN: "A.COM" } }], ["a.com", { subject: { CN: "b.com" } }], ["8.8.8.8", { subject: { CN: "8.8.8.8" } }],
    ["8.8.8.8", { subject: {}, subjectaltname: "IP Address:8.8.8.8" }], ["8.8.8.8", { subject: {}, subjectaltname: "IP Address:8.8.8.0/24" }],
    ["b.a.com", { subject: { CN: "*.a.com" } }], ["ba.com", { subject: { CN: "*.a.com" } }], ["\n.b.com", { subject: { CN: "*n.b.com" } }],
    ["b.a.com", { subject: { CN: "b*b.a.com" } }], ["a.com", {}], ["a.com", { subjectaltname: "DNS:*, DNS:*.com" }], ["foo.com", { subject: { CN: ["foo.com"] } }],
    ["a-cb.a.com", { subjectaltname: "DNS:*b.a.com", subject: {} }], ["xn--bcher-kva.example.com", { subject: { CN: "xn--*.example.com" } }],
    [null, { subject: { CN: "a.com" } }], ["a.com.", { subject: { CN: "a.com." } }],
  ]) {
    const error = tls.checkServerIdentity(host, cert);
    results.push(error === undefined ? "fine" : [error.name, error.code, error.message, error.reason, error.host]);
  }
  for (const protocols of [["h2", "http/1.1"], Buffer.from("abc"), ["a".repeat(500)]]) {
    results.push(told(() => { const out = {}; tls.convertALPNProtocols(protocols, out); return [...out.ALPNProtocols]; }));
  }
  results.push(Object.keys(net).filter((name) => !["_createServerHandle", "_setSimultaneousAccepts"].includes(name)).sort());
  return results;
}
