/**
 * Makes connections from another process of the same user, because a server recognizes connections
 * of its own process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

const source = `
const net = require("node:net");
process.on("message", (target) => {
  const server = net.createServer({ allowHalfOpen: true }, (near) => {
    const far = net.connect({ port: target, host: "127.0.0.1", allowHalfOpen: true });
    for (const [from, to] of [[near, far], [far, near]]) from.on("error", () => to.destroy()).pipe(to);
    far.on("close", () => near.destroy());
  }).listen(0, "127.0.0.1", () => process.send(server.address().port));
});
process.on("disconnect", () => process.exit());
`;

let child: ChildProcess | undefined;

/**
 * Resolves to a port at which the other process forwards connections to a loopback port. That
 * process ends with this one.
 */
export async function relayTo(port: number): Promise<number> {
  child ??= startRelay();
  child.ref();
  child.channel?.ref();
  child.send(port);
  const [relay] = (await once(child, "message")) as [number];
  child.unref();
  child.channel?.unref();
  return relay;
}

const startRelay = () => spawn(process.execPath, ["-e", source], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
