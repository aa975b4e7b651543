/**
 * A process that is a long line to a port of the loopback. Its arguments are the port and the
 * milliseconds in each direction.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

const [to, milliseconds] = process.argv.slice(2).map(Number) as [number, number];

/** Delays data. Timers of the same length fire in the order in which they were set. */
function carry(from: Socket, into: Socket): void {
  from.on("data", (piece) => void setTimeout(() => into.writable && into.write(piece), milliseconds));
  from.on("end", () => void setTimeout(() => into.end(), milliseconds));
  from.on("error", () => undefined);
  from.on("close", () => void setTimeout(() => into.destroy(), milliseconds));
}

const server = createServer({ noDelay: true }, (client) => {
  const other = connect({ port: to, host: "127.0.0.1", noDelay: true });
  carry(client, other);
  carry(other, client);
});
await once(server.listen(0, "127.0.0.1"), "listening");
process.on("disconnect", () => process.exit());
process.send?.((server.address() as AddressInfo).port);
