/** Bytes that stand behind URLs. */
import { NodeError } from "../../util/errors.ts";
import { fetchErrorText } from "../../util/fetch_error.ts";
import { quote } from "../../util/go/text.ts";

export interface HttpContent {
  readonly status: number;
  /** What the server says; undefined when it does not. */
  readonly length: number | undefined;
  /** To be read to its end, or given up. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Ends the connection of content that nobody wants to read. */
export async function discard({ body }: HttpContent): Promise<void> {
  for await (const _ of body) break;
}

async function* none(): AsyncGenerator<Uint8Array> {}

/** @throws NodeError with the reference's text when nobody answers; the signal's reason when it is aborted */
export async function requestUrl(
  url: string,
  { range, signal }: { readonly range?: string; readonly signal?: AbortSignal | undefined } = {},
): Promise<HttpContent> {
  // Lengths and ranges are those of the content itself.
  const headers = { "accept-encoding": "identity", ...(range === undefined ? {} : { range }) };
  const {
    status,
    headers: told,
    body,
  } = await fetch(url, { headers, signal: signal ?? null }).catch((error) => {
    signal?.throwIfAborted();
    throw new NodeError(`Get ${quote(url)}: ${fetchErrorText(error)}`, { cause: error });
  });
  const length = told.get("content-length");
  return { status, length: length === null ? undefined : Number(length), body: body ?? none() };
}
