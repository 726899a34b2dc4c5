// `svelte`: a component that its compiler built for servers
import { render } from "svelte/server";
import Page from "../compiled/Page.js";

export default async () => {
  const { body, head } = await render(Page, { props: { name: "A & B", list: [1, 2] } });
  return [body, head];
};
