import { RouterContextProvider, createRequestHandler } from "react-router";
import { bindings } from "../app/bindings";

// @ts-expect-error the build makes this module
const requestHandler = createRequestHandler(() => import("virtual:react-router/server-build"), import.meta.env.MODE);

export default {
  async fetch(request: Request, env: { GREETING: string }) {
    const context = new RouterContextProvider();
    context.set(bindings, env);
    return requestHandler(request, context);
  },
};
