import type { IncomingMessage } from "node:http";

/**
 * Yields the lines of a response as they arrive. If the response breaks off, it ends without the
 * incomplete line.
 */
export async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = "";
  try {
    for await (const piece of response.setEncoding("utf8") as AsyncIterable<string>) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } catch {
    return;
  }
  if (rest !== "") yield rest;
}
