/** `modhost/net/http`: utility functions of HTTP for module authors (spec 1, 2). */
export { type Form, type FormSource, formdecode, formencode } from "./forms.ts";
export { contains_token, normalize_path, status_codes, urldecode, urlencode } from "./url.ts";
