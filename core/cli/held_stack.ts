/** Where the main thread stands, asked from another one: for a loop that does not turn any more. */
import type { Debugger, Session as InspectorSession } from "node:inspector";
import { withoutVersions } from "../util/stack.ts";

const MAX_FRAMES = 10;

/**
 * The lines of its stack, the innermost first: it is stopped for a moment, and goes on. None when it runs no JavaScript, but
 * waits for the system, within `patience` milliseconds; and where Node.js was built without an inspector.
 */
export async function stackOfMainThread(patience: number): Promise<string[]> {
  let session: InspectorSession;
  try {
    const { Session } = await import("node:inspector");
    session = new Session();
    session.connectToMainThread();
  } catch {
    return [];
  }
  const urls = new Map<string, string>();
  session.on("Debugger.scriptParsed", ({ params: { scriptId, url } }) => urls.set(scriptId, url));
  const { promise: paused, resolve } = Promise.withResolvers<readonly Debugger.CallFrame[]>();
  session.on("Debugger.paused", ({ params }) => resolve(params.callFrames));
  const late = setTimeout(() => resolve([]), patience);
  session.post("Debugger.enable");
  session.post("Debugger.pause");
  const frames = await paused;
  clearTimeout(late);
  session.post("Debugger.resume");
  session.post("Debugger.disable");
  session.disconnect();
  return frames.slice(0, MAX_FRAMES).map(({ functionName, location: { scriptId, lineNumber, columnNumber = 0 } }) => {
    const place = `${urls.get(scriptId) || "<code>"}:${lineNumber + 1}:${columnNumber + 1}`;
    return withoutVersions(`    at ${functionName || "<anonymous>"} (${place})`);
  });
}
