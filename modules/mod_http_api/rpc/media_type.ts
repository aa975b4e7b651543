/** Parses media types with parameters, as strictly as Go's mime package. */

export interface MediaType {
  /** The media type in lower case, without parameters; "" if there is none. */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  /** Go's message if the text is invalid. `type` is still set if only a parameter is malformed. */
  readonly fault: string | undefined;
}

const token = String.raw`[!#$%&'*+\-.^_\`|~0-9A-Za-z]+`;
const typeForm = new RegExp(`^(${token})(?:(/)(${token})?)?(.*)$`, "s");
const parameterForm = new RegExp(
  `\\s*;\\s*(${token})\\s*=\\s*(?:"((?:[^"\\\\\\r\\n]|\\\\[^\\r\\n])*)"|(${token}))`,
  "y",
);

export function parseMediaType(text: string): MediaType {
  const end = text.indexOf(";");
  const type = (end < 0 ? text : text.slice(0, end)).trim().toLowerCase();
  const fault = typeFault(type);
  if (fault !== undefined) return { type: "", parameters: new Map(), fault };
  const parameters = new Map<string, string>();
  let at = end < 0 ? text.length : end;
  for (;;) {
    parameterForm.lastIndex = at;
    const match = parameterForm.exec(text);
    if (match === null) break;
    const name = (match[1] as string).toLowerCase();
    if (parameters.has(name)) return { type: "", parameters: new Map(), fault: "mime: duplicate parameter name" };
    parameters.set(name, match[2]?.replace(/\\([()<>@,;:\\"/[\]?=])/g, "$1") ?? (match[3] as string));
    at = parameterForm.lastIndex;
  }
  const complete = ["", ";"].includes(text.slice(at).trim());
  return complete
    ? { type, parameters, fault: undefined }
    : { type, parameters: new Map(), fault: "mime: invalid media parameter" };
}

function typeFault(type: string): string | undefined {
  const [, main, slash, sub, rest] = typeForm.exec(type) ?? [];
  if (main === undefined) return "mime: no media type";
  if (slash === undefined) return rest === "" ? undefined : "mime: expected slash after first token";
  if (sub === undefined) return "mime: expected token after slash";
  return rest === "" ? undefined : "mime: unexpected content after media subtype";
}
