// Where node:http sends a request: the same cases run in Node and in a worker. See test_node_http_targets.py.
import http from "node:http";
import https from "node:https";

/** Returns `{ name: result }`. `other` is a second server, which no request may reach. */
export async function outcomes(host, port, other) {
  const base = { host, port };
  const at = (path) => () => http.request({ ...base, path });
  const later = (path) => () => Object.assign(http.request({ ...base, path: "/before" }), { path });
  const cases = {};
  const foreign = [`//127.0.0.1:${other}/x`, `///127.0.0.1:${other}/x`, `/\\127.0.0.1:${other}/x`, `//user@127.0.0.1:${other}/x`];
  const absolute = [`http://127.0.0.1:${other}/x`, `HTTP:\\\\127.0.0.1:${other}/x`, `\\\\127.0.0.1:${other}\\x`, `@127.0.0.1:${other}/x`, `.127.0.0.1/x`, `:${other}/x`, "x", "?q", "#f", "*"];
  const usual = ["/", "/a?b=c&d", "/a/b//c", "/@x", "/a:b@c", "/%41%zz", "/a?b?c", "/~!$&'()*+,;=", "", null, undefined, 0, "/a\\b", "/a#b", "/?a#b", "/\u00e9?\u00ff", "/a;b=c"];
  const refused = ["/a b", "/a\nb", "/a\r\nHost: x", "/a\tb", "/\0", "/\u20ac", " /x", "/x ", "\t//127.0.0.1/"];
  for (const path of [...foreign, ...absolute, ...usual, ...refused]) {
    cases[`path ${JSON.stringify(path)}`] = at(path);
    if (path) cases[`later ${JSON.stringify(path)}`] = later(path);
  }
  const wrong = `http://127.0.0.1:${other}/a?b=c`;
  cases["url and path"] = () => http.request(wrong, { port, path: "//x/y" });
  cases["url and hostname"] = () => http.request(`http://nosuch.invalid:${port}/a?b`, { hostname: host });
  cases["url and host"] = () => http.request(`http://127.0.0.1:${port}/a?b`, { host: "nosuch.invalid" });
  cases["url, port and callback"] = () => http.request(new URL(wrong), { port }, () => {});
  cases["url and callback"] = () => http.request(`http://${host}:${port}/a#b`, () => {});
  cases["url and null"] = () => http.request(`http://${host}:${port}/a`, null);
  cases["user and password"] = () => http.request(`http://us%40er:p%3Aw@${host}:${port}/`);
  cases["auth and a header"] = () => http.request({ ...base, auth: "a:b", headers: { authorization: "mine" } });
  cases["headers in turn"] = () => http.request({ ...base, headers: ["authorization", "mine"] });
  cases["headers in pairs"] = () => http.request({ ...base, headers: [["authorization", "mine"]] });
  cases["protocol"] = () => http.request({ ...base, protocol: "https:" });
  cases["protocol of url"] = () => http.request(`https://${host}:${port}/`);
  cases["protocol instead of that of url"] = () => http.request(`https://${host}/`, { protocol: "http:", port });
  cases["https to http"] = () => https.request(`http://${host}:${port}/`);
  cases["agent of the other protocol"] = () => http.request({ ...base, agent: new https.Agent() });
  cases["agent that is none"] = () => http.request({ ...base, agent: 5 });
  for (const bad of ["80/x", `${port}@127.0.0.1:${other}`, `${port}#`, "abc", 70_000, -1, 1.5, {}, Infinity]) {
    cases[`port ${typeof bad} ${JSON.stringify(bad)}`] = () => http.request({ host, port: bad });
  }
  cases["port as text"] = () => http.request({ host, port: ` ${port} ` });
  for (const bad of [`x@${host}`, `${host}/x`, `${host}:${other}`, `${host}#`, `${host}?`, `${host}\\x`, "a b", "%31%32%37.0.0.1", 5, {}, true]) {
    cases[`host ${JSON.stringify(bad)}`] = () => http.request({ host: bad, port });
    cases[`hostname ${JSON.stringify(bad)}`] = () => http.request({ hostname: bad, port });
  }
  for (const method of ["GET /x", 5, "", null, "post", "PURGE"]) cases[`method ${JSON.stringify(method)}`] = () => http.request({ ...base, method });

  const found = {};
  for (const [name, make] of Object.entries(cases)) found[name] = await outcome(make);
  return found;
}

function outcome(make) {
  return new Promise((resolve) => {
    try {
      const request = make();
      request.on("error", (error) => resolve(`fails: ${error.code} ${error.message}`));
      request.on("response", (response) => {
        let text = "";
        response.on("data", (data) => (text += data));
        response.on("end", () => resolve(`reached: ${text}`));
      });
      request.end();
    } catch (error) {
      resolve(`throws: ${error.name} ${error.code} ${error.message}`);
    }
  });
}

export default {
  async fetch(request) {
    const [, host, port, other] = new URL(request.url).pathname.split("/");
    return Response.json(await outcomes(host, Number(port), Number(other)));
  },
};
