import type { IncomingMessage } from "node:http";

/** The lines of an answer, as they come. One that breaks off ends as well, without the line that was cut. */
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
