/** Reads the header of a denylist: YAML, of which only the hints for all items are used. */
import { failure, type NodeError } from "../../util/errors.ts";
import type { Hints } from "./rule.ts";

const VERSION = 1;

/** @throws NodeError for an invalid header, and for a version that is not supported */
export async function parseHeader(text: string): Promise<Hints> {
  // Imported on first use, because most nodes have no denylist.
  const { LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw notYaml(`line ${line}, column ${col}: ${error.message}`, error);
  }
  let header: unknown;
  try {
    header = document.toJS({ maxAliasCount: 0 });
  } catch (cause) {
    throw notYaml((cause as Error).message, cause);
  }
  if (header === null) return {};
  if (typeof header !== "object" || Array.isArray(header))
    throw failure("DENYLIST_INVALID", { reason: "its header has no fields" });
  const { version = VERSION, hints } = header as { readonly version?: unknown; readonly hints?: unknown };
  if (version !== VERSION && version !== 0)
    throw failure("DENYLIST_INVALID", { reason: `its version ${String(version)} is not known here` });
  if (typeof hints !== "object" || hints === null) return {};
  return Object.fromEntries(Object.entries(hints).map(([key, value]) => [key, String(value)]));
}

const notYaml = (reason: string, cause: unknown): NodeError =>
  failure("DENYLIST_INVALID", { reason: `its header is no YAML: ${reason}` }, cause);
