/** Determines the requested format: by `?format=` first, then by Accept. */
import type { HttpRequest } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";

export type Format = "raw" | "car" | "tar" | "dag-json" | "dag-cbor" | "json" | "cbor" | "ipns-record";

export const formatTypes: Readonly<Record<Format, string>> = {
  raw: "application/vnd.ipld.raw",
  car: "application/vnd.ipld.car",
  tar: "application/x-tar",
  "dag-json": "application/vnd.ipld.dag-json",
  "dag-cbor": "application/vnd.ipld.dag-cbor",
  json: "application/json",
  cbor: "application/cbor",
  "ipns-record": "application/vnd.ipfs.ipns-record",
};

const byType = new Map(Object.entries(formatTypes).map(([format, type]) => [type, format as Format]));

export interface Wanted {
  /** Undefined: the content as it is, for a browser. */
  readonly format: Format | undefined;
  /** Parameters of the media type in Accept, such as `order` of a CAR. */
  readonly parameters: ReadonlyMap<string, string>;
  /**
   * Whether the format is not in the URL. The response then names a URL that contains it
   * (Content-Location).
   */
  readonly isImplied: boolean;
}

const none: ReadonlyMap<string, string> = new Map();
const asItIs: Wanted = { format: undefined, parameters: none, isImplied: false };

/** The first media type in Accept that names a content format counts. Weights are ignored. */
const formal = /^application\/(?:vnd\.ipld|vnd\.ipfs|x-tar(?![\w.+-])|json(?![\w.+-])|cbor(?![\w.+-]))/i;

/** @throws {Refusal} 400 for an unknown IPLD media type, and for a malformed one */
export function formatOf(request: Pick<HttpRequest, "header">, query: URLSearchParams): Wanted {
  const requested = query.get("format");
  const accepted = acceptedFormat(
    request.header("accept"),
    requested !== null && Object.hasOwn(formatTypes, requested),
  );
  if (requested === null || !Object.hasOwn(formatTypes, requested)) return accepted;
  const format = requested as Format;
  const parameters = accepted.format === format ? accepted.parameters : none;
  return { format, parameters, isImplied: parameters.size > 0 };
}

function acceptedFormat(accept: string | undefined, lenient: boolean): Wanted {
  if (accept === undefined || !accept.includes("application/")) return asItIs;
  for (const part of accept.split(",")) {
    const text = part.trim();
    if (!formal.test(text)) continue;
    const [type = "", ...rest] = text.split(";");
    const format = byType.get(type.trim().toLowerCase());
    const parameters = new Map<string, string>();
    for (const each of rest) {
      const [, name, quoted, plain] = /^\s*([^\s=]+)\s*=\s*(?:"([^"]*)"|([^\s"]*))\s*$/.exec(each) ?? [];
      if (name !== undefined) parameters.set(name.toLowerCase(), quoted ?? plain ?? "");
      else if (!lenient) throw new Refusal(400, `the media type ${JSON.stringify(text)} in Accept is malformed`);
    }
    if (format !== undefined) return { format, parameters, isImplied: true };
    if (lenient) return asItIs;
    throw new Refusal(400, `the media type ${JSON.stringify(text)} in Accept is unknown`);
  }
  return asItIs;
}
