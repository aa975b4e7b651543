/** The dashboard's document. It contains only references to its scripts and styles. */
import { randomBytes } from "node:crypto";
import { escape_html } from "../../../core/net/http.ts";
import type { ResponseFields } from "../../../core/types.ts";

/** Facts that the document passes to its scripts. */
export interface DocumentFacts {
  /** Base path of the app, such as `/admin`. */
  readonly base: string;
  /** URL of the folders of files, including their version. */
  readonly files: string;
  /** Import map, from bare names to files below `files`. */
  readonly imports: Readonly<Record<string, string>>;
  readonly script: string;
  readonly styles: readonly string[];
  /** Scripts that the main script imports, so that the browser loads them at the same time. */
  readonly preload: readonly string[];
  /** ES modules with the pages of other modules. */
  readonly extensions: readonly string[];
  /** The page key of a local caller; undefined for a caller who has to sign in. */
  readonly pageKey: string | undefined;
  /** Whether the browser has a valid session cookie. It also needs the page key of that session. */
  readonly isSignedIn: boolean;
  /**
   * Whether a page of another origin has opened the document: the script then opens the address
   * again itself.
   */
  readonly opensAgain: boolean;
}

export function documentResponse(facts: DocumentFacts): ResponseFields {
  const nonce = randomBytes(16).toString("base64");
  return {
    headers: {
      content_type: "text/html; charset=utf-8",
      content_security_policy: policy(nonce),
      cache_control: "no-store",
      // A page that opens this one in a tab gets no reference to it. The value
      // "noopener-allow-popups" would do so, too, but browsers that do not know it ignore the
      // header.
      cross_origin_opener_policy: "same-origin",
      cross_origin_resource_policy: "same-origin",
      referrer_policy: "no-referrer",
      permissions_policy: "camera=(), geolocation=(), microphone=()",
      x_content_type_options: "nosniff",
      x_frame_options: "DENY",
    },
    body: page(facts, nonce),
  };
}

/**
 * Allows only scripts that the document names, and what they import. An address of this origin
 * alone is not enough.
 */
function policy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' 'strict-dynamic'`,
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ");
}

function page(facts: DocumentFacts, nonce: string): string {
  const { base, files, imports, script, styles, preload, extensions, pageKey, isSignedIn, opensAgain } = facts;
  const at = (path: string) => `${files}/${path}`;
  const map = { imports: Object.fromEntries(Object.entries(imports).map(([name, path]) => [name, at(path)])) };
  const metas = {
    base,
    "page-key": pageKey ?? "",
    "signed-in": isSignedIn ? "yes" : "",
    again: opensAgain ? "yes" : "",
    extensions: JSON.stringify(extensions.map(at)),
  };
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${Object.entries(metas)
  .map(([name, content]) => `<meta name="${name}" content="${escape_html(content)}">`)
  .join("\n")}
<title>modhost</title>
<link rel="icon" href="data:,">
${styles.map((path) => `<link rel="stylesheet" href="${escape_html(at(path))}">`).join("\n")}
<script type="importmap" nonce="${nonce}">${JSON.stringify(map).replaceAll("<", "\\u003c")}</script>
${preload.map((path) => `<link rel="modulepreload" nonce="${nonce}" href="${escape_html(at(path))}">`).join("\n")}
<script type="module" nonce="${nonce}" src="${escape_html(at(script))}"></script>
</head>
<body>
<noscript>The dashboard needs JavaScript. Without it, <code>modhost status</code> shows the same.</noscript>
</body>
</html>
`;
}
