/** The dashboard's document: it has no content of its own but where its scripts and styles are. */
import { randomBytes } from "node:crypto";
import { escape_html } from "../../../core/net/http.ts";
import type { ResponseFields } from "../../../core/types.ts";

/** What the document tells its scripts. */
export interface DocumentFacts {
  /** Base path of the app, such as `/admin`. */
  readonly base: string;
  /** Address of the folders of files, with their version. */
  readonly files: string;
  /** Import map, from bare names to files below `files`. */
  readonly imports: Readonly<Record<string, string>>;
  readonly script: string;
  readonly styles: readonly string[];
  /** Loaded beside the script: what it imports. */
  readonly preload: readonly string[];
  /** ES modules of other modules' pages. */
  readonly extensions: readonly string[];
  /** Undefined for a caller who has to sign in first. */
  readonly pageKey: string | undefined;
}

export function documentAnswer(facts: DocumentFacts): ResponseFields {
  const nonce = randomBytes(16).toString("base64");
  return {
    headers: {
      content_type: "text/html; charset=utf-8",
      content_security_policy: policy(nonce),
      cache_control: "no-store",
      // A page of the same origin that has opened this one in a tab cannot look into it.
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

/** Scripts are those that the document names, and what they import; an address of this origin alone does not do. */
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
  const { base, files, imports, script, styles, preload, extensions, pageKey } = facts;
  const at = (path: string) => `${files}/${path}`;
  const map = { imports: Object.fromEntries(Object.entries(imports).map(([name, path]) => [name, at(path)])) };
  const metas = { base, "page-key": pageKey ?? "", extensions: JSON.stringify(extensions.map(at)) };
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
