/** Records of PAX headers. They express what the fields of an ordinary header cannot. */
import { invalidHeader, type TarHeader, type TarTime } from "./header.ts";

/** Records that replace a field of the header. */
export const fieldRecords: ReadonlySet<string> = new Set([
  "path",
  "linkpath",
  "uname",
  "gname",
  "uid",
  "gid",
  "size",
  "mtime",
  "atime",
  "ctime",
]);

export const sparsePrefix = "GNU.sparse.";

const texts: ReadonlySet<string> = new Set(["path", "linkpath", "uname", "gname"]);

export function isRecord(key: string, value: string): boolean {
  if (key === "" || key.includes("=")) return false;
  return !(texts.has(key) ? value : key).includes("\0");
}

/** Parses records; the last of equal keys counts. @throws NodeError */
export function readRecords(text: string): Map<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < text.length; ) {
    const blank = text.indexOf(" ", at);
    const digits = blank < 0 ? "" : text.slice(at, blank);
    const end = at + (/^\d{1,9}$/.test(digits) ? Number(digits) : 0);
    if (blank < 0 || end <= blank + 1 || end > text.length || text[end - 1] !== "\n") throw invalidHeader();
    const record = text.slice(blank + 1, end - 1);
    const equals = record.indexOf("=");
    const key = record.slice(0, Math.max(equals, 0));
    const value = record.slice(equals + 1);
    if (equals < 0 || !isRecord(key, value)) throw invalidHeader();
    records.set(key, value);
    at = end;
  }
  return records;
}

/** Returns `<length> <key>=<value>\n`, where the length includes its own digits. */
export function recordText(key: string, value: string): string {
  const rest = key.length + value.length + 3;
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

/** Applies records to a header and ignores empty values. @throws NodeError */
export function mergeRecords(header: TarHeader, records: ReadonlyMap<string, string>): void {
  for (const [key, value] of records) {
    if (value === "") continue;
    if (key === "path") header.name = value;
    else if (key === "linkpath") header.linkname = value;
    else if (key === "uname" || key === "gname") header[key] = value;
    else if (key === "uid" || key === "gid" || key === "size") header[key] = integer(value);
    else if (key === "mtime" || key === "atime" || key === "ctime") header[key] = timeOf(value);
  }
  header.records = records;
}

function integer(text: string): number {
  const value = /^[+-]?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw invalidHeader();
  return value;
}

function timeOf(text: string): TarTime {
  const [, seconds = "", fraction = ""] = /^([^.]*)\.?(\d*)$/.exec(text) ?? [];
  const whole = integer(seconds);
  const nanoseconds = Number(fraction.slice(0, 9).padEnd(9, "0"));
  if (!seconds.startsWith("-") || nanoseconds === 0) return { seconds: whole, nanoseconds };
  return { seconds: whole - 1, nanoseconds: 1e9 - nanoseconds };
}

export function timeText({ seconds, nanoseconds }: TarTime): string {
  if (nanoseconds === 0) return String(seconds);
  const [sign, whole, rest] = seconds < 0 ? ["-", -(seconds + 1), 1e9 - nanoseconds] : ["", seconds, nanoseconds];
  return `${sign}${whole}.${String(rest).padStart(9, "0")}`.replace(/0+$/, "");
}
