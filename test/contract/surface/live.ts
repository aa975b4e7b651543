/** Calls endpoints on a running server and compares their responses with the declared shapes. */
import { text } from "node:stream/consumers";
import { exchange, failureText, type RpcResponse } from "#modules/mod_http_api/cli/rpc/exchange.ts";
import type { Server } from "#modules/mod_http_api/cli/rpc/server.ts";
import type { Command } from "#modules/mod_http_api/rpc/command.ts";
import type { Shape } from "#modules/mod_http_api/rpc/shape.ts";
import type { CallFiles, EarlierResults, EndpointCall } from "./calls.ts";

/** The endpoint works, or the reason why it does not. */
export type EndpointOutcome = { readonly state: "works" } | { readonly state: "fails"; readonly why: string };

const works = { state: "works" } as const;

/** Calls one endpoint, and stores its first value in `results`. */
export async function callEndpoint(
  server: Server,
  path: string,
  command: Command,
  call: EndpointCall,
  results: Record<string, EarlierResults[string]>,
): Promise<EndpointOutcome> {
  const args = typeof call.args === "function" ? call.args(results) : (call.args ?? []);
  const files = typeof call.files === "function" ? call.files(results) : call.files;
  const query = new URLSearchParams([
    ...args.map((value): [string, string] => ["arg", value]),
    ...Object.entries((typeof call.options === "function" ? call.options(results) : call.options) ?? {}),
  ]);
  const upload =
    files === undefined ? {} : { upload: { type: `multipart/form-data; boundary=${boundary}`, content: parts(files) } };
  const leaving = new AbortController();
  const response = await exchange(server, "POST", `/api/v0/${path}?${query}`, { ...upload, signal: leaving.signal });
  if (response.status !== 200) return failed(call, `${response.status} ${await failureText(response)}`);
  if (call.endless === true) {
    leaving.abort();
    return works;
  }
  const body = await text(response.body);
  const late = response.late();
  if (late !== undefined) return failed(call, late);
  const why = wrong(command, body, response, path, results);
  return why === undefined ? works : { state: "fails", why };
}

const failed = ({ fails }: EndpointCall, why: string): EndpointOutcome =>
  fails?.test(why) === true ? works : { state: "fails", why };

function wrong(
  { returns }: Command,
  body: string,
  { headers }: RpcResponse,
  path: string,
  results: Record<string, EarlierResults[string]>,
): string | undefined {
  if (returns.form === "bytes") {
    return headers["x-stream-output"] === "1" ? undefined : `its bytes have the type ${headers["content-type"]}`;
  }
  if (returns.form === "nothing") return body === "" ? undefined : `it responds with ${body.slice(0, 100)}`;
  const values = body
    .split("\n")
    .filter((line) => line !== "")
    .map((line): unknown => JSON.parse(line));
  results[path] = values.at(-1) as EarlierResults[string];
  if (returns.form === "value" && values.length !== 1) return `it responds with ${values.length} values`;
  for (const value of values) {
    const why = misfit(value, returns.shape, "the result");
    if (why !== undefined) return why;
  }
  return undefined;
}

/** Returns why a value does not have a shape, or undefined if it has. */
export function misfit(value: unknown, shape: Shape, where: string): string | undefined {
  if (typeof shape === "string")
    return scalars[shape](value) ? undefined : `${where} is no ${shape}: ${JSON.stringify(value)}`;
  if ("kind" in shape && shape.kind === "nullable") return value === null ? undefined : misfit(value, shape.of, where);
  if (value === null) return `${where} is null`;
  if (!("kind" in shape)) {
    if (!Array.isArray(value)) return `${where} is no list`;
    return first(value.map((item) => misfit(item, shape[0], `${where}[]`)));
  }
  if (typeof value !== "object" || Array.isArray(value)) return `${where} is no object`;
  if (shape.kind === "map") return first(Object.values(value).map((item) => misfit(item, shape.of, `${where}{}`)));
  const missing = Object.keys(shape.fields).find((name) => !(name in value) && !shape.optional.includes(name));
  if (missing !== undefined) return `${where} has no ${missing}`;
  return first(
    Object.entries(value).map(([name, item]) => {
      const of = shape.fields[name];
      return of === undefined ? `${where} has ${name}, which is not declared` : misfit(item, of, `${where}.${name}`);
    }),
  );
}

const first = (reasons: readonly (string | undefined)[]) => reasons.find((reason) => reason !== undefined);

const isInteger = (value: unknown) => Number.isInteger(value);
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0;
const isText = (value: unknown) => typeof value === "string";

const scalars: Readonly<Record<Extract<Shape, string>, (value: unknown) => boolean>> = {
  string: isText,
  bool: (value) => typeof value === "boolean",
  int: isInteger,
  int32: isInteger,
  int64: isInteger,
  uint: isCount,
  uint64: isCount,
  float64: (value) => typeof value === "number",
  time: (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value),
  duration: isInteger,
  base64: isText,
  bytes: isText,
  link: (value) => isText((value as { "/"?: unknown } | null)?.["/"]),
  any: () => true,
};

const boundary = "surface";

async function* parts(files: CallFiles): AsyncGenerator<Uint8Array> {
  for (const [name, content] of Object.entries(files)) {
    const head = `Content-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: application/octet-stream`;
    yield Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`);
    yield Buffer.from(content);
    yield Buffer.from("\r\n");
  }
  yield Buffer.from(`--${boundary}--\r\n`);
}
