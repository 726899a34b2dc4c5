// In place of cross-fetch, node-fetch and node-fetch-native, as with wrangler: the platform's own fetch.
export const fetch = (input, init) => globalThis.fetch(input, init);
export const { AbortController, Blob, File, FormData, Headers, Request, Response } = globalThis;
export const FetchError = Error;
export const AbortError = Error;
export const isRedirect = (status) => [301, 302, 303, 307, 308].includes(status);
export default Object.assign(fetch, { fetch, Headers, Request, Response, isRedirect, Promise });
