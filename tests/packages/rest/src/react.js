// `react-dom`: as text and as a stream with Suspense
import { createElement as h, Suspense, use, useId, useState } from "react";
import { renderToReadableStream, renderToString } from "react-dom/server";

function Counter() {
  const [count] = useState(3);
  return h("p", { id: useId(), className: "c" }, "count ", count, " <&>");
}

export default async () => {
  const soon = new Promise((resolve) => setTimeout(resolve, 5, "later"));
  const Late = () => h("b", null, use(soon));
  const stream = await renderToReadableStream(h("main", null, h(Counter), h(Suspense, { fallback: "wait" }, h(Late))));
  await stream.allReady;
  return [renderToString(h(Counter)), await new Response(stream).text()];
};
