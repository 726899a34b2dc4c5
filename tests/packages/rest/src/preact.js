import { h } from "preact";
import { useState } from "preact/hooks";
import renderToString, { render } from "preact-render-to-string";

function App({ list }) {
  const [n] = useState(2);
  return h("ul", { class: "x" }, list.map((each) => h("li", { key: each }, each, n)));
}

export default () => [renderToString(h(App, { list: ["a", "<b>"] })), render(h("input", { disabled: true, value: "1" }))];
