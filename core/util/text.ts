/**
 * Control characters (except the tab), line separators, and characters that change the direction of
 * text.
 */
const controlCharacters = /[[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]--[\t]]/gv;

/**
 * Returns text from outside as one line that cannot control a terminal: such characters become
 * `\x1b` or `\u202e`.
 */
export function printable(text: string): string {
  return text.replace(controlCharacters, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

/** Escapes text for content and quoted attributes of an HTML page. */
export function escape_html(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The parts of a page of the host; `style` and `body` are inserted unchanged. */
export interface PageParts {
  readonly title: string;
  /** The style sheet. */
  readonly style: string;
  /** The HTML inside `main`. */
  readonly body: string;
}

/** The common style of the host's pages: CSS for the start of a page's `style`. */
export const page_style = `
:root { --text: #1d2126; --soft: #667080; --line: #e3e6ea; --link: #0b57b7; --page: #fff; --hover: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7eb; --soft: #97a1ae; --line: #2b3139; --link: #7db3ff; --page: #14171b; --hover: #1c2127; }
}
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
`;

/**
 * Returns a complete HTML page in English that fits screens of any width and both colour schemes,
 * without other files.
 */
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

/** Formats a number of bytes for people: "88 B", "1.2 kB", "73.4 MB" (powers of 1000). */
export function size_text(bytes: number): string {
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (value < 999.5) return `${unit === "B" || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${Math.round(value)} PB`;
}

/**
 * Returns a number with its noun: `1 key`, `2 keys`, `0 entries`. `plural` is for nouns whose
 * plural is not the noun with an s.
 */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
