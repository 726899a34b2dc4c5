// `url.format` of a URL of the web. https://nodejs.org/api/url.html#urlformaturl-options
import { URL } from "../url/url.js";
import { domainToUnicode } from "./url_domains.js";
import { requireOptions } from "./validate.js";

export function formatUrl(url, options = undefined) {
  if (options) requireOptions(options, "options");
  const { auth = true, fragment = true, search = true, unicode = false } = options ?? {};
  const copy = new URL(url.href);
  if (!auth) copy.username = copy.password = "";
  if (!fragment) copy.hash = "";
  if (!search) copy.search = "";
  return unicode ? copy.href.replace(copy.hostname, domainToUnicode(copy.hostname)) : copy.href;
}
