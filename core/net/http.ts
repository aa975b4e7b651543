/** `modhost/net/http`: utility functions of HTTP for module authors (spec 1, 2). */

export { escape_html, html_page, type PageParts, page_style, printable, size_text } from "../util/text.ts";
export { contains_token, normalize_path, status_codes, urldecode, urlencode } from "../util/url.ts";
export * from "./client.ts";
export { type Form, type FormSource, formdecode, formencode } from "./forms.ts";
