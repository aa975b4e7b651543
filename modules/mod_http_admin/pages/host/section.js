/** The pages of the host itself. */

/** @type {import("../sections.js").SectionEntry} */
export const hostSection = {
  title: "Host",
  pages: [
    { path: "overview", title: "Overview", load: () => import("./overview.js") },
    { path: "modules", title: "Modules", load: () => import("./modules.js") },
    { path: "routes", title: "Routes", load: () => import("./routes.js") },
    { path: "middleware", title: "Middleware", load: () => import("./middleware.js") },
    { path: "requests", title: "Requests", load: () => import("./requests.js") },
    { path: "log", title: "Log", load: () => import("./log.js") },
    { path: "config", title: "Configuration", load: () => import("./config.js") },
    { path: "certificates", title: "Certificates", load: () => import("./certificates.js") },
    { path: "tokens", title: "Tokens", load: () => import("./tokens.js") },
    { path: "audit", title: "Audit", load: () => import("./audit.js") },
  ],
};
