import { addSection } from "modhost/admin";

addSection({ title: "Host", pages: [{ path: "visits", title: "Visits", load: () => import("./visits.js") }] });
