/** Lists of records as routers send them: one document of JSON, or a line for each. */
import { setImmediate as turn } from "node:timers/promises";
import { readAll } from "../../../util/async/read_all.ts";
import { NodeError } from "../../../util/errors.ts";
import { quote } from "../../../util/go/text.ts";

/** Bytes of an answer, as Kubo reads it. Of lines those before count, a document has failed. */
export const MAX_ANSWER_SIZE = 1024 * 1024;
/** Records of an answer that are looked at. */
export const MAX_RECORDS = 1000;
/** Records after which other work has its turn. */
const RECORDS_PER_TURN = 16;

export const LIST_TYPES = "application/x-ndjson,application/json";

/**
 * The records, whatever they are, as they come. Lines that are no JSON are left out.
 *
 * @param member of a document, which has them
 * @throws NodeError for another type, and for a document that is none
 */
export async function* listed(answer: Response, member: "Providers" | "Peers"): AsyncGenerator<unknown> {
  let seen = 0;
  for await (const record of recordsOf(answer, member)) {
    yield record;
    seen += 1;
    if (seen === MAX_RECORDS) return;
    if (seen % RECORDS_PER_TURN === 0) await turn();
  }
}

async function* recordsOf(answer: Response, member: string): AsyncGenerator<unknown> {
  const { body } = answer;
  const type = typeOf(answer);
  if (type === "application/x-ndjson") {
    if (body === null) return;
    for await (const line of lines(body)) yield jsonOf(line);
  } else if (type === "application/json") {
    const document = body === null ? undefined : jsonOf(await whole(body));
    if (typeof document !== "object" || document === null) throw new NodeError("the answer is no document of JSON");
    const records = (document as Readonly<Record<string, unknown>>)[member];
    if (Array.isArray(records)) yield* records;
  } else {
    await body?.cancel();
    throw new NodeError(`the answer is of the type ${quote(type)}, and not ${LIST_TYPES}`);
  }
}

/** Without parameters, in small letters. */
export const typeOf = ({ headers }: Response): string =>
  (headers.get("content-type") ?? "").replace(/;.*/s, "").trim().toLowerCase();

async function whole(body: AsyncIterable<Uint8Array>): Promise<string> {
  const tooLong = () => new NodeError(`the answer has more than ${MAX_ANSWER_SIZE} bytes`);
  return Buffer.from(await readAll(body, MAX_ANSWER_SIZE, tooLong)).toString();
}

/** Lines that are not empty, up to the most bytes. */
async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let begun = "";
  let size = 0;
  for await (const bytes of body) {
    size += bytes.length;
    if (size > MAX_ANSWER_SIZE) return;
    const parts = decoder.decode(bytes, { stream: true }).split("\n");
    parts[0] = begun + parts[0];
    begun = parts.pop() as string;
    for (const line of parts) if (line.trim() !== "") yield line;
  }
  if (begun.trim() !== "") yield begun;
}

/** Undefined for text that is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
