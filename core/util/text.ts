/** Control characters (the tab excepted), line separators, and marks that turn the direction of writing. */
const steering = /[[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]--[\t]]/gv;

/** Text from outside as one line that cannot steer a terminal: what could is written as `\x1b` or `\u202e`. */
export function printable(text: string): string {
  return text.replace(steering, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

/** Text for an HTML page, where it stands for itself in content and in quoted attributes. */
export function escape_html(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** What a page of the host is made of; `style` and `body` are taken as they are. */
export interface PageParts {
  readonly title: string;
  /** CSS. */
  readonly style: string;
  /** HTML within `main`. */
  readonly body: string;
}

/** The look that the pages of the host have in common: CSS for the beginning of the `style` of a page. */
export const page_style = `
:root { --text: #1d2126; --soft: #667080; --line: #e3e6ea; --link: #0b57b7; --page: #fff; --hover: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7eb; --soft: #97a1ae; --line: #2b3139; --link: #7db3ff; --page: #14171b; --hover: #1c2127; }
}
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
`;

/** A whole HTML page, in English, that fits screens of any width and either colour scheme. It needs nothing else. */
export function html_page({ title, style, body }: PageParts): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape_html(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
}

/** A number of bytes for people: "88 B", "1.2 kB", "73.4 MB" (powers of 1000). */
export function size_text(bytes: number): string {
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (value < 999.5) return `${unit === "B" || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${Math.round(value)} PB`;
}
