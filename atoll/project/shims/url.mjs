// In place of whatwg-url: the platform's own URL.
export const { URL, URLSearchParams } = globalThis;
export default { URL, URLSearchParams };
