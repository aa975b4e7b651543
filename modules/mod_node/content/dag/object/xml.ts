/** Objects as XML, for `object put`. */
import type { Steps } from "../../../util/async/steps.ts";
import { failure } from "../../../util/errors.ts";
import { quote } from "../../../util/go/text.ts";
import { visitXml } from "../../../util/go/xml.ts";
import type { SerializedObject } from "./json.ts";

/** Number of nested elements from the root to a part of a link. */
const MAX_DEPTH = 3;

/**
 * Reads `<Node><Links><Name/><Hash/><Size/></Links><Data/></Node>`. Other elements are ignored, and
 * the root may have any name.
 *
 * @throws NodeError with the reference's text
 */
export function* readObjectXml(bytes: Uint8Array): Steps<SerializedObject> {
  const draft: SerializedObject = { data: new Uint8Array(), links: [] };
  const path: string[] = [];
  const texts: string[] = [];
  yield* visitXml(bytes, {
    start(name) {
      path.push(name);
      texts.push("");
      if (path.length === 2 && name === "Links") draft.links.push({ name: "", hash: "", size: 0 });
    },
    text(text) {
      texts.push(`${texts.pop()}${text}`);
    },
    end() {
      const text = texts.pop() as string;
      if (path.length <= MAX_DEPTH) take(draft, path.slice(1).join("/"), text);
      path.pop();
    },
  });
  return draft;
}

function take(draft: SerializedObject, path: string, text: string): void {
  if (path === "Data") draft.data = Buffer.from(text);
  const link = draft.links.at(-1);
  if (link === undefined) return;
  if (path === "Links/Name") link.name = text;
  else if (path === "Links/Hash") link.hash = text;
  else if (path === "Links/Size") link.size = sizeIn(text.trim());
}

function sizeIn(text: string): number {
  if (text === "") return 0;
  if (!/^\d+$/.test(text))
    throw failure("NUMBER_INVALID", { reason: `strconv.ParseUint: parsing ${quote(text)}: invalid syntax` });
  const size = Number(text);
  if (size > Number.MAX_SAFE_INTEGER)
    throw failure("NUMBER_INVALID", { reason: `the size ${text.slice(0, 24)} is more than any tree has` });
  return size;
}
