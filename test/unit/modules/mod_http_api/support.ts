/**
 * Serves the API with commands of the test behind a real port, and parses responses from the bytes
 * of the connection.
 */

import type { ApiSettings } from "#modules/mod_http_api/http/api.ts";
import { createCommandMetrics } from "#modules/mod_http_api/http/command_metrics.ts";
import { mountApi } from "#modules/mod_http_api/http/mount.ts";
import type { Commands } from "#modules/mod_http_api/rpc/command.ts";
import { CommandLog } from "#modules/mod_http_api/rpc/command_log.ts";
import { Table } from "#modules/mod_http_api/rpc/table.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";

export interface ApiHost extends TestHost {
  readonly log: TestHost["log"];
  readonly commands: CommandLog;
  /** Unexpected errors that commands threw. */
  readonly faults: unknown[];
}

export async function startApi(
  parts: readonly Commands[],
  settings: Partial<ApiSettings> = {},
  config: Record<string, unknown> = {},
): Promise<ApiHost> {
  const commands = new CommandLog();
  const faults: unknown[] = [];
  const host = await startHost({
    config: { https_ports: [], ...config },
    modules: {
      mod_http_api(module) {
        module.depends("http");
        mountApi(module, {
          table: new Table(parts),
          log: commands,
          metrics: createCommandMetrics(),
          tokens: [],
          hosts: new Set(),
          headers: () => ({}),
          node: undefined,
          fault: (_command, thrown) => void faults.push(thrown),
          ...settings,
        });
      },
    },
  });
  return Object.assign(host, { commands, faults });
}

export interface Reply {
  readonly status: number;
  /** Lower-case names; repeated lines are joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  /** Decoded as UTF-8, without the chunk framing. */
  readonly body: string;
  readonly chunks: readonly string[];
  readonly trailers: Readonly<Record<string, string>>;
}

export interface AskOptions {
  readonly method?: string;
  /** Additional header lines. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/**
 * Makes a call on a connection of its own. `path` is relative to `/api/v0/` unless it is a whole
 * request target.
 */
export async function ask(port: number, path: string, { method = "POST", headers = {}, body }: AskOptions = {}) {
  const target = /^(\/|http:)/.test(path) ? path : `/api/v0/${path}`;
  const lines = { Host: `127.0.0.1:${port}`, "Content-Length": String(Buffer.byteLength(body ?? "")), ...headers };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  using connection = await RawConnection.open(port);
  connection.write(`${method} ${target} HTTP/1.1\r\n${head.join("")}Connection: close\r\n\r\n`);
  if (body !== undefined) connection.write(Buffer.from(body));
  return replyOf(await connection.end());
}

/** Parses the response from the text of a connection, in Latin-1. */
export function replyOf(text: string): Reply {
  const end = text.indexOf("\r\n\r\n");
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const headers = fieldsOf(lines);
  const rest = text.slice(end + 4);
  const status = Number(first.split(" ")[1]);
  if (headers["transfer-encoding"] !== "chunked")
    return { status, headers, body: utf8(rest), chunks: [], trailers: {} };
  const chunks: string[] = [];
  let at = 0;
  for (;;) {
    const line = rest.indexOf("\r\n", at);
    const size = Number.parseInt(rest.slice(at, line), 16);
    if (Number.isNaN(size)) throw new Error(`The answer is cut off: ${JSON.stringify(text)}`);
    at = line + 2;
    if (size === 0) break;
    chunks.push(utf8(rest.slice(at, at + size)));
    at += size + 2;
  }
  const trailers = fieldsOf(
    rest
      .slice(at)
      .split("\r\n")
      .filter((line) => line !== ""),
  );
  return { status, headers, body: chunks.join(""), chunks, trailers };
}

const utf8 = (latin1: string) => Buffer.from(latin1, "latin1").toString("utf8");

function fieldsOf(lines: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const line of lines) {
    const [, name = "", value = ""] = /^([^:]*):\s*(.*)$/s.exec(line) ?? [];
    const key = name.toLowerCase();
    fields[key] = key in fields ? `${fields[key]}, ${value}` : value;
  }
  return fields;
}

export interface SentPart {
  /** Name of the part; `file` by default. */
  readonly name?: string;
  readonly filename?: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly content?: string | Buffer;
}

const boundary = "frame-boundary";

/** Returns a multipart body and its header. `cut` omits the closing boundary. */
export function multipart(parts: readonly SentPart[], { cut = false } = {}) {
  const pieces = parts.flatMap(({ name = "file", filename, type, headers = {}, content = "" }) => {
    const rest = filename === undefined ? "" : `; filename="${filename}"`;
    const lines = [`Content-Disposition: form-data; name="${name}"${rest}`];
    if (type !== undefined) lines.push(`Content-Type: ${type}`);
    for (const [key, value] of Object.entries(headers)) lines.push(`${key}: ${value}`);
    return [`--${boundary}\r\n${lines.join("\r\n")}\r\n\r\n`, content, "\r\n"];
  });
  if (cut) pieces.pop();
  else pieces.push(`--${boundary}--\r\n`);
  const body = Buffer.concat(pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)));
  return { headers: { "Content-Type": `multipart/form-data; boundary=${boundary}` }, body };
}
