/** An icon for each entry, chosen by its name alone, so that no entry is read for it. */

import { typeByName } from "../media/types.ts";

/** Drawings of 24 by 24 units. */
const shapes = {
  file: "<path d='M6 3h8l4 4v14H6z'/><path d='M14 3v4h4'/>",
  text: "<path d='M6 3h8l4 4v14H6z'/><path d='M9 12h6M9 16h6'/>",
  picture: "<rect x='4' y='5' width='16' height='14' rx='1'/><path d='m4 16 5-5 4 4 3-3 4 4'/>",
  sound: "<path d='M9 18V6l10-2v12'/><circle cx='7' cy='18' r='2'/><circle cx='17' cy='16' r='2'/>",
  film: "<rect x='4' y='5' width='16' height='14' rx='1'/><path d='m10 9 5 3-5 3z'/>",
  archive: "<path d='M4 7h16v13H4zM4 7l2-3h12l2 3M12 11v4'/>",
  any: "<path d='M4 6h6l2 2h8v11H4z'/>",
} as const;

type Icon = keyof typeof shapes;

/** A name without an extension is usually a directory, unless it is known to be a file. */
export function iconOf(name: string, isFile: boolean): Icon {
  const type = typeByName(name);
  if (type === undefined) return isFile || name.lastIndexOf(".") > 0 ? "file" : "any";
  if (type.startsWith("image/")) return "picture";
  if (type.startsWith("audio/")) return "sound";
  if (type.startsWith("video/")) return "film";
  if (/zip|tar|compressed|bzip2|x-xz|zstd|rar|archive|image$/.test(type)) return "archive";
  return /^text\/|json|pdf|document/.test(type) ? "text" : "file";
}

const picture = (shape: string): string => {
  const svg = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='#8792a0' stroke-width='1.5'>${shape}</svg>`;
  return `url("data:image/svg+xml,${encodeURIComponent(svg).replaceAll("'", "%27")}")`;
};

export const iconStyle = [
  ".icon { padding-left: 2.125rem; background: no-repeat .5rem .625rem / 1.125rem; }",
  ...Object.entries(shapes).map(([name, shape]) => `.${name} { background-image: ${picture(shape)}; }`),
].join("\n");
