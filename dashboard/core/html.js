// Markup without a compiler: tagged templates that make Preact elements. Text in them stays text.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
