/** Paths of the mutable namespace: `/a/b`. */

/** @param {string} path */
export const partsOf = (path) => path.split("/").filter(Boolean);
/** @param {string} path */
export const nameOf = (path) => partsOf(path).at(-1) ?? "";
/** @param {string} path */
export const parentOf = (path) => `/${partsOf(path).slice(0, -1).join("/")}`;
/** @param {string} folder @param {string} name */
export const within = (folder, name) => `${folder === "/" ? "" : folder}/${name}`;
