/** Reads lists of records that routers send: one JSON document, or one line per record. */
import { setImmediate as turn } from "node:timers/promises";
import { readAll } from "../../../util/async/read_all.ts";
import { failure } from "../../../util/errors.ts";
import { quote } from "../../../util/go/text.ts";

/**
 * Maximum size of a response in bytes, as in Kubo. Lines up to this size are used, while a longer
 * document fails.
 */
export const MAX_RESPONSE_SIZE = 1024 * 1024;
/** Maximum number of records of a response that are read. */
export const MAX_RECORDS = 1000;
/** Number of records after which other work may run. */
const RECORDS_PER_TURN = 16;

export const LIST_TYPES = "application/x-ndjson,application/json";

/**
 * Yields the records as they arrive, without validation. Lines that are not valid JSON yield
 * undefined.
 *
 * @param member property of a document that contains the records @throws NodeError for another
 * content type, and for an invalid document
 */
export async function* listed(response: Response, member: "Providers" | "Peers"): AsyncGenerator<unknown> {
  let seen = 0;
  for await (const record of recordsOf(response, member)) {
    yield record;
    seen += 1;
    if (seen === MAX_RECORDS) return;
    if (seen % RECORDS_PER_TURN === 0) await turn();
  }
}

async function* recordsOf(response: Response, member: string): AsyncGenerator<unknown> {
  const { body } = response;
  const type = typeOf(response);
  if (type === "application/x-ndjson") {
    if (body === null) return;
    for await (const line of lines(body)) yield jsonOf(line);
  } else if (type === "application/json") {
    const document = body === null ? undefined : jsonOf(await whole(body));
    if (typeof document !== "object" || document === null)
      throw failure("ROUTER_FAILED", { reason: "the response is not a JSON document" });
    const records = (document as Readonly<Record<string, unknown>>)[member];
    if (Array.isArray(records)) yield* records;
  } else {
    await body?.cancel();
    throw failure("ROUTER_FAILED", { reason: `the response has the type ${quote(type)} instead of ${LIST_TYPES}` });
  }
}

/** Returns the content type without parameters, in lower case. */
export const typeOf = ({ headers }: Response): string =>
  (headers.get("content-type") ?? "").replace(/;.*/s, "").trim().toLowerCase();

async function whole(body: AsyncIterable<Uint8Array>): Promise<string> {
  const tooLong = () => failure("ROUTER_FAILED", { reason: `the response has more than ${MAX_RESPONSE_SIZE} bytes` });
  return Buffer.from(await readAll(body, MAX_RESPONSE_SIZE, tooLong)).toString();
}

/** Yields lines that are not empty, up to the maximum number of bytes. */
async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let begun = "";
  let size = 0;
  for await (const bytes of body) {
    size += bytes.length;
    if (size > MAX_RESPONSE_SIZE) return;
    const parts = decoder.decode(bytes, { stream: true }).split("\n");
    parts[0] = begun + parts[0];
    begun = parts.pop() as string;
    for (const line of parts) if (line.trim() !== "") yield line;
  }
  if (begun.trim() !== "") yield begun;
}

/** Returns undefined for text that is not valid JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
