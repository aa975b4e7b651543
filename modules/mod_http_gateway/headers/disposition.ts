/** Content-Disposition: in the page or saved, and under which name. */

/** Bytes of a name that go into the header. */
const MAX_NAME_LENGTH = 1024;
/** As that of a CID: nothing is to be escaped, and nothing to be cut. */
const PLAIN_NAME = /^[\w.-]{1,255}$/;

/** Both forms of the name: what is not ASCII is `_` in the first, and the same bytes escaped in the second. */
export function disposition(kind: "inline" | "attachment", name: string): string {
  if (PLAIN_NAME.test(name)) return `${kind}; filename="${name}"; filename*=UTF-8''${name}`;
  const shown = name.slice(0, MAX_NAME_LENGTH).toWellFormed();
  const ascii = escaped(shown.replace(/\P{ASCII}/gu, "_"));
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${escaped(shown)}`;
}

/** As a segment of a path. */
const escaped = (text: string): string =>
  encodeURIComponent(text)
    .replace(/%(24|26|2B|3A|3D|40)/g, decodeURIComponent)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
