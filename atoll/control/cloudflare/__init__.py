"""Cloudflare's API, /client/v4, for wrangler and Cloudflare's SDKs: views of what the native API manages."""
