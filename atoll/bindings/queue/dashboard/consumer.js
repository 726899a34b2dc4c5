// Who consumes a queue, as a link to the worker.
import { html } from "#dashboard/core/html.js";
import { Link, workerPath } from "#dashboard/core/router.js";
import { Text } from "#dashboard/parts/pieces.js";

export const consumerOf = ({ consumer, pulls }) => (consumer ? html`<${Link} to=${workerPath(consumer)}><${Text}>${consumer}<//><//>` : pulls ? "pulled over HTTP" : html`<span class="soft">none</span>`);
