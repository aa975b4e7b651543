/**
 * Facts that the service needs from a request head first, collected in one pass over the raw field
 * lines.
 */
export interface HeadFacts {
  /** Value of Host or :authority. */
  readonly authority: string | undefined;
  /**
   * There are several Host lines, or a Host line that differs from :authority (RFC 9113, 8.3.1). No
   * honest client sends that.
   */
  readonly ambiguousHost: boolean;
  /** The announced length in bytes; undefined without Content-Length. */
  readonly contentLength: number | undefined;
  readonly chunked: boolean;
  /** The body has a transfer coding in addition to chunks, so its contents cannot be read here. */
  readonly coded: boolean;
  /**
   * Size as HTTP/2 counts it: bytes of names and values, and 32 for each line (RFC 9113, 6.5.2).
   */
  readonly size: number;
}

const LINE_BYTES = 32;

/** The facts of a request that could not be parsed. */
export const unparsedHead: HeadFacts = {
  authority: undefined,
  ambiguousHost: false,
  contentLength: undefined,
  chunked: false,
  coded: false,
  size: 0,
};

export function scanHead(raw: readonly string[]): HeadFacts {
  let pseudo: string | undefined;
  let host: string | undefined;
  let hosts = 0;
  let contentLength: number | undefined;
  let chunked = false;
  let coded = false;
  let size = 0;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    size += name.length + (raw[at + 1] as string).length + LINE_BYTES;
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
        if (name.toLowerCase() !== "transfer-encoding") break;
        coded ||= chunked || (raw[at + 1] as string).toLowerCase() !== "chunked";
        chunked = true;
        break;
    }
  }
  const isOther = pseudo !== undefined && host !== undefined && host.toLowerCase() !== pseudo.toLowerCase();
  return { authority: pseudo ?? host, ambiguousHost: hosts > 1 || isOther, contentLength, chunked, coded, size };
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

/**
 * Converts field lines to a table (contract, part 2): lower-case names with underscores, repeated
 * lines joined.
 */
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
  // :authority replaces Host and is not joined to it.
  if (authority !== undefined) table.host = authority;
  return table;
}
