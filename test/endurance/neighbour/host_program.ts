/** Starts a host with the options in the first argument; prints its port, and its warnings. */
import { createHost } from "#core/host.ts";

const host = createHost({
  config: JSON.parse(process.argv[2] as string),
  log: { level: "warn", destination: { write: (line) => process.send?.({ line }) } },
});
await host.start();
process.send?.({ port: host.listening()[0]?.port });
process.on("message", () => {
  process.send?.({ states: host.modules().map(({ name, status, note }) => ({ name, status, note })) });
});
process.on("disconnect", () => void host.stop());
