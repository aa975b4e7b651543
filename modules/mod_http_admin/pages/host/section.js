/** The pages of the host itself. */

/** @type {import("../sections.js").SectionEntry} */
export const hostSection = {
  title: "Host",
  pages: [
    { path: "overview", title: "Overview", load: () => import("./overview.js") },
    { path: "modules", title: "Modules", load: () => import("./modules.js") },
  ],
};
