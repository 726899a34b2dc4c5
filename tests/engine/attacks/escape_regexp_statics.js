// RegExp.$_ holds the last match of the platform's own regular expressions. It must not show data of other workers or of the node.
// expect: answer clean
// times: 3
// limits: cpu_ms=1000
export default {
  async fetch(request, env) {
    const seen = [];
    const look = () => seen.push(RegExp.input, RegExp.lastMatch, RegExp.leftContext, RegExp.rightContext, RegExp.$1, RegExp.$9);
    look();
    request.headers.get("accept");
    look();
    new URLPattern({ pathname: "/:a" }).exec(request.url);
    look();
    await env.ECHO.say({});
    look();
    await fetch("http://victim.localhost/").catch(() => {});
    look();
    await crypto.subtle.digest("SHA-256", new Uint8Array(1));
    look();
    const strange = seen.filter((text) => /victim(?!\.localhost\/?)|engine|\/(work|tmp|root|usr|home)\//.test(text));
    return new Response(strange.length === 0 ? "clean" : JSON.stringify(strange));
  },
};
