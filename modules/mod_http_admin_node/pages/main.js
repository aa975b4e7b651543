/** Adds the pages of the node. */
import { addSection } from "modhost/admin";

addSection({
  title: "Node",
  pages: [
    { path: "node", title: "Node", load: () => import("./node/overview.js") },
    { path: "node/peers", title: "Peers", load: () => import("./node/peers.js") },
    { path: "node/pins", title: "Pins", load: () => import("./node/pins.js") },
    { path: "node/remote", title: "Remote pins", load: () => import("./node/remote.js") },
    { path: "node/keys", title: "Keys and names", load: () => import("./node/keys.js") },
    { path: "node/bitswap", title: "Bitswap", load: () => import("./node/bitswap.js") },
    { path: "node/config", title: "Node configuration", load: () => import("./node/config.js") },
  ],
});
addSection({
  title: "Content",
  pages: [
    { path: "files", title: "Files", load: () => import("./files/browser.js") },
    { path: "explore", title: "Explore", load: () => import("./explore.js") },
  ],
});
