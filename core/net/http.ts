/** `modhost/net/http`: utility functions of HTTP for module authors (spec 1, 2). */
export * from "./client.ts";
export { type Form, type FormSource, formdecode, formencode } from "./forms.ts";
export { escape_html, printable, size_text } from "./text.ts";
export { contains_token, normalize_path, status_codes, urldecode, urlencode } from "./url.ts";
