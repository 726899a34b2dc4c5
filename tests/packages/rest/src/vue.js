import { createSSRApp, h, ref } from "vue";
import { renderToString, renderToWebStream } from "@vue/server-renderer";

const app = () =>
  createSSRApp({
    async setup() {
      const count = ref(2);
      await Promise.resolve();
      return () => h("div", { class: ["a", { b: true }] }, [`count ${count.value} <&>`, h("input", { value: "x" })]);
    },
  });

export default async () => {
  const context = {};
  return [await renderToString(app(), context), await new Response(renderToWebStream(app())).text()];
};
