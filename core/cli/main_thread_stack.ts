/** Reads the stack of the main thread from another thread, when the event loop is blocked. */
import type { Debugger, Session as InspectorSession } from "node:inspector";
import { withoutVersions } from "../util/stack.ts";

const MAX_FRAMES = 10;

/**
 * Returns the lines of the main thread's stack, the innermost first. The thread is paused for a
 * moment and then continues. Returns none if it runs no JavaScript within `patience` milliseconds
 * because it waits for the system, or if Node.js was built without an inspector.
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
    const position = `${urls.get(scriptId) || "<code>"}:${lineNumber + 1}:${columnNumber + 1}`;
    return withoutVersions(`    at ${functionName || "<anonymous>"} (${position})`);
  });
}
