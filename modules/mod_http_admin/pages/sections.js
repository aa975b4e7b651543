/** The pages of the dashboard by section: the host's own pages, and those of other modules. */

/**
 * A page. `load` imports the module whose default export is the page's component, when the page is
 * first shown. The component gets `rest`, the part of the address after the page's path.
 * @typedef {{ path: string, title: string, load: () => Promise<{ default: any }> }} PageEntry
 */
/** @typedef {{ title: string, pages: readonly PageEntry[] }} SectionEntry */

/** @type {SectionEntry[]} */
export const sections = [];

/**
 * Adds pages to the section with that title, which is created if necessary. Their paths begin with
 * a name of the module.
 * @param {SectionEntry} section
 */
export function addSection({ title, pages }) {
  const at = sections.findIndex((each) => each.title === title);
  if (at === -1) sections.push({ title, pages });
  else sections[at] = { title, pages: [...(sections[at]?.pages ?? []), ...pages] };
}

/**
 * Returns the page for a path. The page with the longest matching path wins.
 * @param {string} path
 * @returns {{ page: PageEntry, rest: string } | undefined}
 */
export function pageAt(path) {
  const pages = sections.flatMap(({ pages: own }) => own).sort((a, b) => b.path.length - a.path.length);
  const page = pages.find((each) => path === each.path || path.startsWith(`${each.path}/`));
  return page && { page, rest: path.slice(page.path.length + 1) };
}
