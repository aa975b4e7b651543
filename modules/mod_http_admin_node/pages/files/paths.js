/** Paths of the mutable namespace: `/a/b`. */

/** @param {string} path */
export const partsOf = (path) => path.split("/").filter(Boolean);
/**
 * Returns the escaped names of a path for a URL. Names with bytes that are not UTF-8 contain lone
 * surrogates, which a URL cannot contain.
 *
 * @param {string} path
 */
export const addressParts = (path) => partsOf(path).map((name) => encodeURIComponent(name.toWellFormed()));
/** @param {string} path */
export const nameOf = (path) => partsOf(path).at(-1) ?? "";
/** @param {string} path */
export const parentOf = (path) => `/${partsOf(path).slice(0, -1).join("/")}`;
/** @param {string} folder @param {string} name */
export const within = (folder, name) => `${folder === "/" ? "" : folder}/${name}`;
