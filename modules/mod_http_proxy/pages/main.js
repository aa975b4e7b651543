/** The page of the proxy in the dashboard. */
import { addSection } from "modhost/admin";

addSection({
  title: "Host",
  pages: [{ path: "upstreams", title: "Upstreams", load: () => import("./upstreams.js") }],
});
