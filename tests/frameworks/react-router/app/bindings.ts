import { createContext } from "react-router";

export const bindings = createContext<{ GREETING: string }>();
