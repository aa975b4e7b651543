/** Content-Disposition: whether content is shown or saved, and under which name. */

/** Maximum length in bytes of a name in the header. */
const MAX_NAME_LENGTH = 1024;
/** Names that need neither escaping nor cutting, such as a CID. */
const PLAIN_NAME = /^[\w.-]{1,255}$/;

/**
 * Returns both forms of the name. The first has `_` in place of non-ASCII characters, and the
 * second escapes them.
 */
export function disposition(kind: "inline" | "attachment", name: string): string {
  if (PLAIN_NAME.test(name)) return `${kind}; filename="${name}"; filename*=UTF-8''${name}`;
  const shown = name.slice(0, MAX_NAME_LENGTH).toWellFormed();
  const ascii = escaped(shown.replace(/\P{ASCII}/gu, "_"));
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${escaped(shown)}`;
}

/** Escapes as in a path segment. */
const escaped = (text: string): string =>
  encodeURIComponent(text)
    .replace(/%(24|26|2B|3A|3D|40)/g, decodeURIComponent)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
