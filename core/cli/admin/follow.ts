/** Follows events of the Admin API. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "../../util/node_http.ts";
import { assertOwn, NoServerError, unreachable } from "./client.ts";
import { linesOf } from "./lines.ts";

/**
 * Yields the data of each event of one topic; ends when the server ends the stream, or the signal
 * aborts.
 * @throws {NoServerError} no server listens on the socket
 */
export async function* follow<T>(socketPath: string, topic: string, signal: AbortSignal): AsyncGenerator<T> {
  assertOwn(socketPath);
  const path = `/admin/api/events?topics=${topic}`;
  const sent = request({ socketPath, agent: false, path, signal }).end();
  const response = await once(sent, "response").then(
    ([response]) => response as IncomingMessage,
    (error: unknown) => {
      throw new NoServerError(unreachable(socketPath, error));
    },
  );
  sent.on("error", () => undefined);
  if (response.statusCode !== 200) throw new Error(`The server at ${socketPath} responded with ${response.statusCode}`);
  try {
    for await (const line of linesOf(response)) {
      if (line.startsWith("data: ")) yield JSON.parse(line.slice("data: ".length)) as T;
    }
  } finally {
    sent.destroy();
  }
}
