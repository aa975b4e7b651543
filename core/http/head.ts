/** What the service must know of a request head before anything else, from one pass over the raw field lines. */
export interface HeadFacts {
  /** Value of Host or :authority. */
  readonly authority: string | undefined;
  /** More than one Host line, or one beside another :authority (RFC 9113, 8.3.1), which no honest client sends. */
  readonly ambiguousHost: boolean;
  /** Bytes announced; undefined without Content-Length. */
  readonly contentLength: number | undefined;
  readonly chunked: boolean;
}

export function scanHead(raw: readonly string[]): HeadFacts {
  let pseudo: string | undefined;
  let host: string | undefined;
  let hosts = 0;
  let contentLength: number | undefined;
  let chunked = false;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    switch (name.length) {
      case 4:
        if (name.toLowerCase() !== "host") break;
        host ??= raw[at + 1];
        hosts += 1;
        break;
      case 10:
        if (name === ":authority") pseudo = raw[at + 1];
        break;
      case 14:
        if (name.toLowerCase() === "content-length") contentLength = Number(raw[at + 1]);
        break;
      case 17:
        if (name.toLowerCase() === "transfer-encoding") chunked = true;
        break;
    }
  }
  const isOther = pseudo !== undefined && host !== undefined && host.toLowerCase() !== pseudo.toLowerCase();
  return { authority: pseudo ?? host, ambiguousHost: hosts > 1 || isOther, contentLength, chunked };
}

const nameMemo = new Map<string, string>();
const MAX_REMEMBERED_NAMES = 1024;

/** `Content-Type` becomes `content_type`. */
function fieldName(raw: string): string {
  let name = nameMemo.get(raw);
  if (name === undefined) {
    name = raw.toLowerCase().replaceAll("-", "_");
    if (nameMemo.size < MAX_REMEMBERED_NAMES && raw.length <= 64) nameMemo.set(raw, name);
  }
  return name;
}

/** Field lines as the table of spec 2: lower-case names with underscores, repeats joined. */
export function headerTable(raw: readonly string[]): Record<string, string | undefined> {
  const table: Record<string, string | undefined> = Object.create(null);
  let authority: string | undefined;
  for (let at = 0; at < raw.length; at += 2) {
    const line = raw[at] as string;
    const value = raw[at + 1] as string;
    if (line.charCodeAt(0) === 58) {
      if (line === ":authority") authority = value;
      continue;
    }
    const name = fieldName(line);
    const before = table[name];
    table[name] = before === undefined ? value : `${before}${name === "cookie" ? "; " : ", "}${value}`;
  }
  // It stands for Host, and is no second one beside it.
  if (authority !== undefined) table.host = authority;
  return table;
}

/** The lines of a header under this name alone, in lower case: in the table above another spelling of it counts, too. */
export function lineOf(raw: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let at = 0; at < raw.length; at += 2) {
    const line = raw[at] as string;
    if (line.length !== name.length || line.toLowerCase() !== name) continue;
    value = value === undefined ? raw[at + 1] : `${value}, ${raw[at + 1]}`;
  }
  return value;
}
